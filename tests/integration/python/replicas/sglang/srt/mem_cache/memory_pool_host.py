# SPDX-License-Identifier: Apache-2.0
"""Replica: host pools, and where the ranges of memory of a page are."""

import torch


class HostKVCache:
    """MHA: K and V; MLA: a latent. The pool of a page's indices is `size` tokens. In the layouts page_first_direct and
    page_head a page is a row of its own."""

    def __init__(self, size, page_size, layers, heads, dim, dtype, layout="page_first", is_mla=False):
        self.size, self.page_size, self.layout, self.dtype = size, page_size, layout, dtype
        self.layer_num, self.head_num, self.head_dim = layers, heads, dim
        self.kinds = 1 if is_mla else 2
        inner = {
            "layer_first": (layers, size, heads, dim),
            "page_first": (size, layers, heads, dim),
            "page_first_direct": (size // page_size, layers, page_size, heads, dim),
            "page_head": (size // page_size, heads, page_size, layers, dim),
        }
        self.kv_buffer = torch.zeros((self.kinds, *inner[layout]), dtype=dtype)

    def ranges(self, first):
        """The parts of a page as tensors, in the order of get_page_buffer_meta."""
        tokens = slice(first, first + self.page_size)
        if self.layout == "page_first":
            return [self.kv_buffer[kind, tokens] for kind in range(self.kinds)]
        if self.layout in ("page_first_direct", "page_head"):
            return [self.kv_buffer[kind, first // self.page_size] for kind in range(self.kinds)]
        return [self.kv_buffer[kind, layer, tokens] for layer in range(self.layer_num) for kind in range(self.kinds)]

    def get_page_buffer_meta(self, indices):
        assert len(indices) % self.page_size == 0
        parts = [part for first in indices.tolist()[:: self.page_size] for part in self.ranges(first)]
        assert all(part.is_contiguous() for part in parts)
        return [part.data_ptr() for part in parts], [part.numel() * part.element_size() for part in parts]

    def get_dummy_flat_data_page(self):
        return torch.zeros(self.kv_buffer.numel() // self.size * self.page_size, dtype=self.dtype)

    def get_data_page(self, first, flat=True):
        return torch.cat([part.flatten() for part in self.ranges(int(first))])

    def set_from_flat_data_page(self, first, page):
        place = 0
        for part in self.ranges(int(first)):
            part.copy_(page[place : place + part.numel()].view(part.shape))
            place += part.numel()


class LogicalHostPool:
    """The primary pool of models whose pages are in further pools only: it has indices and no memory."""

    def __init__(self, size, page_size):
        self.size, self.page_size, self.layout, self.dtype = size, page_size, "page_first", torch.uint8

    def get_page_buffer_meta(self, indices):
        return None
