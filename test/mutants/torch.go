package main

// torchPlugin has rows of the plug-in for PyTorch, whose test needs no torch.
var torchPlugin = []mutant{
	plugin("tensors without elements", never, "Marks.test_extent"),
	plugin("extent of a tensor with gaps", replace("(n - 1) * stride", "n * stride"), "Marks.test_extent"),
	plugin("bytes of a KV cache", replace("role == contract.KV", "True"), "Marks.test_unknown_dtype_is_bytes"),
	plugin("bytes of types without a number", replace("t.dtype is not torch.uint8", "False"), "Marks.test_unknown_dtype_is_bytes"),
	plugin("rows of types without a number", replace(", t.element_size()]", "]"), "Marks.test_unknown_dtype_keeps_rows"),
	plugin("shape of a tensor with gaps", replace("not t.is_contiguous() or ", ""), "Marks.test_shape_of_gaps"),
	plugin("blocks of one device", never, "Marks.test_blocks"),
	plugin("blocks that nobody owns", replace("!=", "=="), "Marks.test_blocks"),
	plugin("address of a block", skip, "Marks.test_blocks"),
	plugin("restored graphs that are gone", never, "Sessions.test_stale_graphs_are_not_launched"),
	plugin("driver error of a launch", never, "Sessions.test_failed_launch"),
	plugin("errors of the library", never, "Sessions.test_errors"),
	plugin("errors of the library", replace(" and code != contract.FALLBACK", ""), "Sessions.test_errors"),
	plugin("starts that are restored", replace("self.run == RESTORE and ", ""), "Sessions.test_restores_while_the_library_says_so"),
	plugin("triggers of a plug-in in a native start that checks", replace(" and self.run != CHECK", ""), "Sessions.test_triggers_of_a_check"),
	plugin("blocks that libraries keep", always, "Workspaces.test_what_products_leave"),
	plugin("block map of torch", replace(" and not self._mapped", ""), "Sessions.test_block_map_once"),
	plugin("block map of torch", replace(`("warmup", "capture")`, `("capture",)`), "Sessions.test_block_map_once"),
	plugin("size of the KV cache of a plug-in", replace(" if given == 1 else None", ""), "Sessions.test_size_of_the_cache"),
	plugin("failed trigger", never, "Sessions.test_failed_trigger"),
	plugin("failed trigger", replace(" and code != contract.FALLBACK", ""), "Sessions.test_failed_trigger"),
	plugin("named tensors are held", skip, "Sessions.test_named_tensors_are_held"),
	plugin("restored memory by name", always, "Sessions.test_memory_is_looked_up_once"),
	plugin("bytes of a restored view", replace("(n - 1) * s", "n * s"), "Sessions.test_memory_is_looked_up_once"),
	plugin("self test that is too long", replace("min(len(out), capacity)", "min(len(out), capacity - 1)"), "Sessions.test_self_test"),
	plugin("graphs of a refused start", skip, "Sessions.test_refused_start_has_no_graphs"),
	ranges("bytes that blocks need in whole pages", replace("pages_for(middle * size) for", "middle * size / PAGE for"), "TestRanges.test_blocks_in"),
	ranges("zeros that come after the next step", skip, "TestRanges.test_sizes"),
	ranges("page that was mapped in vain", skip, "TestRanges.test_failures"),
	ranges("resize of ranges that fails half way", skip, "TestRanges.test_failures"),
	plugin("capture phase begins once", always, "Captures.test_phase_begins_once"),
}

func plugin(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/torch/test/test_plugin.py", test}
}

func ranges(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/torch/test/test_ranges.py", test}
}
