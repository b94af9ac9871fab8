package main

// mutant switches one mechanism off: in File, Old (which must occur exactly once) becomes New. Test is the go test that
// has to fail for it: a package and a -run pattern.
type mutant struct {
	Name          string
	File          string
	Old, New      string
	Package, Test string
}

// table has one row for each mechanism that stands between a recorded graph and a wrong token.
var table = []mutant{
	{
		"liveness by capture moment (Figure 6)", "materialize/liveness.go",
		"if c.gone != undo {", "if c.gone != undo && s.done < 0 {",
		"./materialize", "TestReusedAddressBelongsToTheLiveAllocation|TestUnprovenWords",
	}, {
		"liveness inside an open capture", "materialize/liveness.go",
		"if at, ok := g.moments[node]; ok {", "if at, ok := g.moments[node]; ok && at == 0 {",
		"./materialize", "TestFreeInsideACapture",
	}, {
		"seeded gaps", "interpose/preload/gaps.c",
		"gap_mode = state ? ON : OFF;", "gap_mode = OFF;",
		"./interpose", "TestGapsMoveAllocationsAgainstEachOther",
	}, {
		"gaps before modules", "interpose/preload/module.c",
		"\tgaps_before((struct gap_source){.kind = GAP_DEVICE}, 512);", "\t(void)gaps_before;",
		"./interpose", "TestGapsBeforeModules",
	}, {
		"variables of one module that touch", "materialize/liveness.go",
		"x.space == graphir.SpaceGlobal && y.space == graphir.SpaceGlobal && x.module == y.module", "false && x == y",
		"./materialize", "TestTouchingVariablesOfOneModule",
	}, {
		"gaps inside a capture", "interpose/preload/gaps.c",
		"if (capture_active() && leaves_graphs_alone(from) && within_budget(pile_of(from)))", "if (capture_active() && leaves_graphs_alone(from) && !within_budget(pile_of(from)))",
		"./interpose", "TestGapsOfEveryKind",
	}, {
		"gaps between page-locked buffers", "interpose/preload/gaps.c",
		"\tif (!capture_active())\n\t\tmake_some(from, bytes);", "\tif (!capture_active() && from.kind == GAP_DEVICE)\n\t\tmake_some(from, bytes);",
		"./interpose", "TestGapsOfEveryKind",
	}, {
		"pointer inside a by-value struct", "materialize/words.go",
		"o += 8\n\t}\n\treturn fixups, nil", "o = end\n\t}\n\treturn fixups, nil",
		"./internal/test/e2e", "TestFixupsAgreeWithGroundTruth",
	}, {
		"tensor map in a struct that is aligned in constant memory", "materialize/words.go",
		"(o-off)%tensorMapAlign", "o%tensorMapAlign",
		"./materialize", "TestTensorMaps",
	}, {
		"pointer into the middle of an allocation", "materialize/liveness.go",
		"addr-last.addr <= last.size", "addr == last.addr",
		"./internal/test/e2e", "TestFixupsAgreeWithGroundTruth",
	}, {
		"memory inside of other memory", "materialize/liveness.go",
		"if y.addr-x.addr < x.size && !twice {", "if y.addr-x.addr < x.size && !twice && x.size == 0 {",
		"./materialize", "TestImpossibleAllocations",
	}, {
		"memory that wraps around", "materialize/recording.go",
		"if addr+size >= addr {", "if addr+size >= addr || size > 0 {",
		"./materialize", "TestImpossibleAllocations",
	}, {
		"words outside of a kernel's layout", "materialize/graphs.go",
		"err != nil || isPointer {\n\t\t\treturn &RefusedError{c.label, i, \"kernel", "err != nil && isPointer {\n\t\t\treturn &RefusedError{c.label, i, \"kernel",
		"./materialize", "TestParametersOutsideOfTheLayout",
	}, {
		"large buffers in pieces", "materialize/contents.go",
		"if o-start >= p.cut {", "if o-start >= p.cut && o == 0 {",
		"./materialize", "TestLargeBuffersAreSavedInPieces",
	}, {
		"constant equal to a live address", "materialize/words.go",
		"if na+nb == 0 {\n\t\t\treturn ptr, false, nil", "if na+nb >= 0 {\n\t\t\treturn ptr, false, nil",
		"./materialize", "TestUnprovenWords",
	}, {
		"address between two allocations", "materialize/words.go",
		"case matches > 1:", "case matches > 2:",
		"./materialize", "TestTouchingAllocationsAreAmbiguous",
	}, {
		"hidden module", "restore/kernels.go",
		"modules = append(modules, h)\n", "_ = h\n",
		"./internal/test/e2e", "TestReferenceRestores",
	}, {
		"module identity beside the kernel's name", "restore/kernels.go",
		"if !sameImage(&module, m) {", "if module.Kind == 0 {",
		"./internal/test/e2e", "TestReferenceRestores",
	}, {
		"triggering layer", "materialize/triggers.go",
		"n > gain", "n > gain+1000",
		"./internal/test/e2e", "TestZooRestores|TestReferenceRestores",
	}, {
		"permanent buffer", "restore/memory.go",
		"for i := range m.spec.Contents {\n\t\tc := &m.spec.Contents[i]\n\t\tdata", "for i := range m.spec.Contents[:0] {\n\t\tc := &m.spec.Contents[i]\n\t\tdata",
		"./internal/test/e2e", "TestReferenceRestores",
	}, {
		"temporary skipped", "interpose/preload/content.c",
		"if (b->live)\n\t\t\tplan_piece", "if (true)\n\t\t\tplan_piece",
		"./internal/test/e2e", "TestZooSavesPermanentBuffersOnly",
	}, {
		"pointer in saved contents", "restore/objects.go",
		"binary.LittleEndian.PutUint64(data[f.Offset:], base+f.Pointer.Offset)", "binary.LittleEndian.PutUint64(data[f.Offset:], base+f.Pointer.Offset+8)",
		"./internal/test/e2e", "TestZooRestores",
	}, {
		"pointer discovered in saved contents", "materialize/contents.go",
		"if isPointer {", "if isPointer && o > 1<<40 {",
		"./internal/test/e2e", "TestZooRestores",
	}, {
		"size check of the replayed sequence", "restore/sequence.go",
		"uint32(a.Kind) == allocs[got].Kind && a.Size == allocs[got].Size", "uint32(a.Kind) == allocs[got].Kind",
		"./restore", "TestComparePrefix",
	}, {
		"edges of a fork and join", "restore/build.go",
		"for _, run := range edgeRuns(edges) {", "for _, run := range edgeRuns(edges[:min(len(edges), 5)]) {",
		"./internal/test/e2e", "TestZooRestores",
	}, {
		"memset nodes", "restore/build.go",
		"Value: m.Value,", "Value: m.Value + 1,",
		"./internal/test/e2e", "TestZooRestores",
	}, {
		"memcpy nodes", "restore/build.go",
		"WidthInBytes: m.Width", "WidthInBytes: m.Width / 2",
		"./internal/test/e2e", "TestZooRestores",
	}, {
		"identity check", "restore/identity.go",
		"artifacts.Compare(s.artifact.Identity, factors, ", "artifacts.Compare(s.artifact.Identity, s.artifact.Identity, ",
		"./internal/test/e2e", "TestZooFailsOpen",
	}, {
		"verification before the name", "materialize/digests.go",
		"if !bytes.Equal(want, r.Hash(0, c)) || !bytes.Equal(want, r.Hash(1, c)) {", "if len(want) == 0 && bytes.Equal(want, nil) {",
		"./materialize", "TestCompareDigests",
	}, {
		"tensors by name in divided allocations", "restore/tensors.go",
		"m.base[s.spec.Object(graphir.SpaceTensor, uint32(i))] = place.addr", "m.base[s.spec.Object(graphir.SpaceTensor, uint32(i))] = m.base[t.At.Alloc] + t.At.Offset + 0*place.addr",
		"./internal/test/e2e", "TestCachingAllocator",
	}, {
		"block map, online with offline", "restore/tensors.go",
		"if !bytes.Equal(graphir.BlockMapDigest(now), s.spec.BlockMap) {", "if !bytes.Equal(graphir.BlockMapDigest(now), s.spec.BlockMap) && len(now) == 1<<30 {",
		"./internal/test/e2e", "TestCachingAllocator",
	}, {
		"block map, run A with run B", "materialize/blocks.go",
		"if !m.equal {", "if m.equal {",
		"./internal/test/e2e", "TestCachingAllocator",
	}, {
		"block that was free at the start of capture", "materialize/blocks.go",
		"if m.a.begin.freed.holds(m.a.address(at)) {", "if m.a.begin.freed[:0].holds(m.a.address(at)) {",
		"./internal/test/e2e", "TestMemoryOfTwoOwners",
	}, {
		"old address in padding", "materialize/words.go",
		"if size > 8 && p.blocks.leftover(ptr) {", "if size > 8 && p.blocks.leftover(ptr) && p.blocks == nil {",
		"./internal/test/e2e", "TestOldAddressInAStruct",
	}, {
		"address that is a parameter of its own", "materialize/words.go",
		"if size > 8 && p.blocks.leftover(ptr) {", "if size >= 8 && p.blocks.leftover(ptr) {",
		"./materialize", "TestOldAddressesInStructs",
	}, {
		"memory of the capture phase in a block that was free", "materialize/blocks.go",
		"&& !m.ready.live.holds(addr)", "&& len(m.ready.blocks) >= 0",
		"./materialize", "TestOldAddressesInStructs",
	}, {
		"which old address a kernel follows", "materialize/padding.go",
		"errors.Join(ps.point(), part.poison(pattern))", "errors.Join(ps.settle(), part.poison(pattern))",
		"./internal/test/e2e", "TestOldAddressInAStruct",
	}, {
		"memory that the engine rewrites", "restore/stale.go",
		"if differs(out.Ranges, results) {", "if differs(out.Ranges[:0], results[:0]) {",
		"./internal/test/e2e", "TestMemoryOfTwoOwners",
	}, {
		"allocations by thread and order, run A with run B", "materialize/threads.go",
		"if len(sa) < 2 {", "if len(sa) < 2000 {",
		"./internal/test/e2e", "TestRecordingsByThread",
	}, {
		"allocations by thread and order, online with offline", "restore/threads.go",
		"out[recorded] = allocs[here]", "out[recorded] = allocs[recorded+0*here]",
		"./internal/test/e2e", "TestThreadsInAnyOrder",
	}, {
		"threads that cannot be told apart", "materialize/threads.go",
		"\tif !ok {\n\t\treturn \"\"\n\t}\n\treturn fmt.Sprintf(\"it refers", "\tif !ok || other < 1000 {\n\t\treturn \"\"\n\t}\n\treturn fmt.Sprintf(\"it refers",
		"./internal/test/e2e", "TestRecordingsByThread",
	}, {
		"free of memory that graphs refer to", "interpose/preload/maps.c",
		"if (a->watched)", "if (a->watched && a->trigger)",
		"./internal/test/e2e", "TestFreeOfReferencedMemory",
	}, {
		"unload of a module that graphs refer to", "interpose/preload/module.c",
		"watch_ended((uintptr_t)handle);", "(void)watch_ended;",
		"./internal/test/e2e", "TestUnloadOfReferencedModule",
	}, {
		"end of an event that graphs refer to", "interpose/preload/events.c",
		"watch_ended((uintptr_t)event);", "(void)watch_ended;",
		"./internal/test/e2e", "TestUnloadOfReferencedModule",
	}, {
		"graphs that the engine has called invalid", "restore/invalid.go",
		"s.restored.invalid = cause", "_ = cause",
		"./internal/test/e2e", "TestSessionInC",
	}, {
		"node types that cannot be restored", "materialize/graphs.go",
		"return &RefusedError{c.label, i, nodeTypeName(na.Type), na.Reason}", "out.Type = graphir.NodeEmpty",
		"./materialize", "TestRefusals",
	}, {
		"memory of another process", "materialize/graphs.go",
		"case al.kind == graphir.AllocIPC:", "case al.kind == graphir.AllocIPC+100:",
		"./materialize", "TestRefusedMemory",
	}, {
		"host memory registered in the capture phase", "materialize/graphs.go",
		"case al.kind == graphir.AllocRegistered && al.born > c.table.deadline:", "case al.kind == graphir.AllocRegistered+100 && al.born > c.table.deadline:",
		"./materialize", "TestRefusedMemory",
	}, {
		"executable graph that is changed", "interpose/preload/graphs.c",
		"core_fault(#name, \"executable graph %p was changed after it was recorded\", (void *)exec);", "(void)exec;",
		"./interpose", "TestChangedExecutableGraphIsAFault",
	}, {
		"compressed code of a fat binary", "internal/cubin/fatbin.go",
		"if flags&flagLZ4 != 0 {", "if flags&flagLZ4 == 0 {",
		"./internal/cubin", "TestFatbin",
	}, {
		"graphs built at their first use", "restore/restoration.go",
		"if s.env.Lazy {", "if s.env.Lazy && len(s.spec.Graphs) == 0 {",
		"./internal/test/e2e", "TestLazyGraphs",
	}, {
		"hashes of the host where the device refuses", "restore/canary.go",
		"if cuda.Sticky(err) {", "if err != nil {",
		"./internal/test/e2e", "TestChecksOnTheHost",
	}, {
		"canary replay before ready", "restore/canary.go",
		"if got != want[label] {", "if got == \"\" {",
		"./internal/test/e2e", "TestChecksBeforeReady",
	}, {
		"what a canary replay writes is put back", "restore/canary.go",
		"return errors.Join(err, putBack(kept))", "return errors.Join(err, putBack(kept[:0]))",
		"./internal/test/e2e", "TestChecksBeforeReady",
	}, {
		"hash of memory that stays unchanged", "restore/canary.go",
		"if got != v.Sum {", "if got == \"\" {",
		"./internal/test/e2e", "TestChecksBeforeReady",
	}, {
		"chunks that replays change are left out", "restore/digest/unchanged.go",
		"if !r.Stable(c) || !bytes.Equal(r.Hash(0, c), old.Hash(0, c)) {", "if !r.Stable(c) {",
		"./restore/digest", "TestUnchanged",
	}, {
		"hash kernel proven before use", "restore/devicehash/devicehash.go",
		"if !bytes.Equal(got, want) {", "if !bytes.Equal(got, got) {",
		"./restore/devicehash", "TestNewProvesTheKernel",
	}, {
		"pointers hashed as what they point to, on the device", "restore/devicehash/devicehash.go",
		"if r.Pointers && len(h.objects) > 0 {", "if r.Pointers && len(h.objects) > 1<<20 {",
		"./restore/devicehash", "TestDeviceHashesAsTheHost",
	}, {
		"chunks that a replay changed are filled again", "restore/known.go",
		"if !bytes.Equal(sums[:digest.HashBytes], k.sums[from]) {", "if len(sums) == 0 {",
		"./restore", "TestKnownCompare",
	}, {
		"padding that matters", "materialize/padding.go",
		"if v, err = with(ps, pattern); err == nil {", "if v, err = with(nil, pattern); err == nil {",
		"./materialize", "TestPaddingThatMattersIsFound",
	}, {
		"page-locked memory is not device memory", "materialize/liveness.go",
		"if a.kind != graphir.AllocPinned && a.kind != graphir.AllocRegistered {", "if a.size != 0 {",
		"./materialize", "TestParametersOfOneWord",
	}, {
		"events of two threads", "materialize/objects.go",
		"if other, found := c.a.mistakable(na.Event, c.table.deadline); found {", "if other, found := c.a.mistakable(na.Event, c.table.deadline); found && other > 1000 {",
		"./materialize", "TestEventsOfTheEngine",
	}, {
		"padding of embedded graphs", "materialize/objects.go",
		"c.padding = append(c.padding, p)", "_ = append(c.padding, p)",
		"./materialize", "TestPaddingOfEmbeddedGraphs",
	}, {
		"place of padding in an embedded graph", "materialize/objects.go",
		"p.graph = number\n", "p.graph = number * 0\n",
		"./materialize", "TestPaddingOfEmbeddedGraphs",
	}, {
		"memory given back by a failed restore", "restore/restoration.go",
		"errors.Join(reasonOf(err), r.undo())", "reasonOf(err)",
		"./internal/test/faults", "TestSampleOfFaults",
	}, {
		"new process where the context is lost", "restore/session.go",
		"if cuda.Sticky(f.Reason) ||", "if s.restored != nil && cuda.Sticky(f.Reason) ||",
		"./internal/test/faults", "TestSampleOfFaults",
	}, {
		"new process where a check has spoilt the engine's memory", "restore/session.go",
		"|| errors.As(f.Reason, &spoilt) {", "|| errors.As(f.Reason, &spoilt) && s.restored != nil {",
		"./internal/test/faults", "TestSampleOfFaults",
	}, {
		"first fit in the region", "interpose/preload/zone.c",
		"while (i < z->n && need > gap_end(z, i) - gap_start(z, i))", "while (i < z->n)",
		"./interpose", "TestExactAddressesRepeat",
	}, {
		"scratch for trigger scopes", "interpose/preload/exact.c",
		"(launch_in_trigger() ? SCRATCH_SMALL : 0)", "(launch_in_trigger() ? 0 : 0)",
		"./interpose", "TestExactAddressesRepeat",
	}, {
		"the driver's answer to a hint", "interpose/preload/exact.c",
		"rc == CUDA_SUCCESS && got == base", "rc == CUDA_SUCCESS",
		"./interpose", "TestExactHintsRefused|TestExactBaseIsTaken",
	}, {
		"free waits for work (exact addresses)", "interpose/preload/exact.c",
		"*rc = capture_active() ? probe_free() : REAL(cuCtxSynchronize)();", "*rc = capture_active() ? probe_free() : CUDA_SUCCESS;",
		"./interpose", "TestExactAddressesRepeat",
	}, {
		"pages shared by small allocations", "interpose/preload/exact.c",
		"if (users > 1) {", "if (users > 1000) {",
		"./interpose", "TestExactAddressesRepeat",
	}, {
		"capture-phase memory at its recorded place", "restore/exact.go",
		"if a.Address == 0 {", "if a.Address != 0 {",
		"./internal/test/e2e", "TestBothWays",
	}, {
		"relocation where a base is not honoured", "restore/memory.go",
		"return base + p.Offset, nil", "if a := p.Alloc; p.Space == 0 && m.spec.Allocations[a].Address != 0 {\n\t\tbase = m.spec.Allocations[a].Address\n\t}\n\treturn base + p.Offset, nil",
		"./internal/test/e2e", "TestBothWays",
	}, {
		"each rank its own part", "artifacts/file.go",
		"return f.readRank(f.nearest(rank), ", "return f.readRank(f.nearest(0*rank), ",
		"./internal/test/e2e", "TestTwoWorkers|TestRanksStartAlike",
	}, {
		"each rank its own trace", "interpose/preload/rank.c",
		"if (r.count == 1)", "if (r.count > 0)",
		"./interpose", "TestTraceOfEachRank",
	}, {
		"ranks agree before anything is allocated", "restore/identity.go",
		"if err := s.agree(stageStart); err != nil {", "if err := error(nil); err != nil {",
		"./internal/test/e2e", "TestRanksStartAlike",
	}, {
		"ranks agree before anything is replayed", "restore/restoration.go",
		"err = s.agree(stageBuilt)", "err = nil",
		"./internal/test/e2e", "TestRanksStartAlike",
	}, {
		"one decision for all ranks", "restore/agree.go",
		"a.decide(s, \"\", \"\")", "return nil",
		"./restore", "TestRanksAgree",
	}, {
		"kernels from images", "restore/kernels.go",
		"errors.Is(err, errNotLoaded) && module.Kind != graphir.ModuleHidden", "errors.Is(err, errNotLoaded) && module.Kind == graphir.ModuleHidden",
		"./internal/test/e2e", "TestKernelsFromImages",
	}, {
		"hash of a reloaded image", "restore/images.go",
		"if sha256.Sum256(image) != m.ImageSHA256 {", "if sha256.Sum256(image) == m.ImageSHA256 && len(image) == 0 {",
		"./internal/test/e2e", "TestKernelsFromImages",
	}, {
		"contents of a block across mappings", "interpose/preload/content.c",
		"uint64_t from = b->addr > a->addr ? b->addr : a->addr,", "uint64_t from = b->addr,",
		"./interpose", "TestMarksAndContents",
	}, {
		"gaps in a region", "interpose/preload/zone.c",
		"if (!z->stretch)\n", "if (z)\n",
		"./interpose", "TestStretchedRegion",
	}, {
		"boundary of two mappings", "materialize/liveness.go",
		"!(n == 1 && s.behind(last, a))", "n < 2",
		"./materialize", "TestMappingsSideBySide",
	}, {
		"block that begins in the mapping before", "materialize/blocks.go",
		"append([]uint32{e.Alloc}, chains[e.Alloc]...)", "append([]uint32{e.Alloc}, chains[e.Alloc][:0]...)",
		"./materialize", "TestBlockAcrossMappings",
	}, {
		"mappings of the engine side by side", "restore/memory.go",
		"m.base[i] != want {", "m.base[i] < want {",
		"./restore", "TestEngineChains",
	}, {
		"mappings of the capture phase in one piece", "restore/memory.go",
		"m.base[k] = addr\n", "m.base[k] = addr + 2<<20\n",
		"./internal/test/programs", "TestMemoryAcrossMappings",
	}, {
		"place of an image in a build", "restore/kernels.go",
		"return want.DSOOffset == got.DSOOffset", "return true",
		"./restore", "TestSameImage",
	}, {
		"images that a program can write", "interpose/preload/image.c",
		"!(home->p_flags & PF_W) &&", "true &&",
		"./interpose", "TestImagesInEveryContainer",
	}, {
		"build of an image's shared object", "materialize/object.go",
		"if id != m.BuildID {", "if m.BuildID == \"\" {",
		"./materialize", "TestImageInObject",
	}, {
		"state of a reloaded module", "materialize/images.go",
		"recorded.Options != 0 || stateful(known, uint32(i), image) != \"\"", "recorded.Options != 0",
		"./internal/test/e2e", "TestKernelsFromImages",
	}, {
		"load options of a reloaded module", "materialize/images.go",
		"recorded.Options != 0 || ", "",
		"./internal/test/e2e", "TestKernelsFromImages",
	}, {
		"graphs that the engine captures in every start", "materialize/compile.go",
		"(g.order > begin || begin == noOrder)", "(g.order > begin || begin != 0)",
		"./materialize", "TestEarlierGraphsAreTheEngines",
	}, {
		"a chunk of zeros is one in all its bytes", "restore/digest/sum.go",
		"bytes.Equal(chunk, zeros[:])", "bytes.Equal(chunk[8:ChunkBytes-8], zeros[16:])",
		"./restore/digest", "TestSumIsFixed",
	}, {
		"hashes of pieces that are made side by side", "restore/digest.go",
		"left = left[len(own):]", "left = left[:len(left)]",
		"./restore", "TestHashOnHost",
	}, {
		"artifact read while the engine makes its context", "restore/identity.go",
		"\tgo func() {\n\t\tvar a", "\tfunc() {\n\t\tvar a",
		"./restore", "TestArtifactIsReadMeanwhile",
	}, {
		"child of a server that forks its engine", "interpose/preload/core.c",
		"if (trace_state == UNOPENED && medusa_alloc_count", "if (trace_state == OPEN && medusa_alloc_count",
		"./interpose", "TestForkedEngineIsRecorded",
	}, {
		"exit code of a recorded server", "materialize/engine.go",
		"if err != nil && ran != nil {", "if ran != nil {",
		"./materialize", "TestTheTraceDecides",
	}, {
		"notes of two recordings", "materialize/notes.go",
		"!bytes.Equal(n.Value, o.Value)", "len(n.Value) != len(o.Value)",
		"./materialize", "TestNotes",
	}, {
		"a note's last value", "materialize/notes.go",
		"r.notes[i] = n\n\t\treturn", "return",
		"./materialize", "TestNotes",
	}, {
		"memory that graphs hand on", "restore/layout.go",
		"if graphs && t.Role == graphir.RoleOutput", "if !graphs && t.Role == graphir.RoleOutput",
		"./restore", "TestSpansOfHandedMemory",
	}, {
		"numbers in memory that graphs hand on", "restore/fill.go",
		"fillFloats(data, dtype, seedOf(purposeHanded", "garbage(data, seedOf(purposeHanded",
		"./restore", "TestSpansOfHandedMemory",
	}, {
		"which of the restored graphs is launched", "cmd/libmedusa/main.go",
		"uint64(graph) >= uint64(len(restored))", "uint64(graph) > uint64(len(restored))",
		"./internal/test/e2e", "TestSessionInC",
	}, {
		"variables put back after a failed restore", "restore/restoration.go",
		"errors.Join(putBack(r.memory.kept), r.destroy())", "r.destroy()",
		"./internal/test/e2e", "TestVariablesAfterAFailedRestore|TestVariablesAfterAPeerFailed",
	}, {
		"contents in the engine's memory", "graphir/validate_graph.go",
		"v.spec.Allocations[c.Alloc].Owner == OwnerEngine {", "v.spec.Allocations[c.Alloc].Owner == 0 {",
		"./graphir", "TestValidateExtents",
	}, {
		"extent of a copy", "graphir/validate_extents.go",
		"v.pointer(e.Pointer, size, path)", "v.pointer(e.Pointer, 0*size, path)",
		"./graphir", "TestValidateExtents",
	}, {
		"extent of a fill", "graphir/validate_extents.go",
		"v.pointer(m.Dst, size, dst)", "v.pointer(m.Dst, 0*size, dst)",
		"./graphir", "TestValidateExtents",
	}, {
		"host buffers are in the file", "graphir/validate_extents.go",
		"if h.Size != held[i] && ", "if h.Size < held[i] && ",
		"./graphir", "TestValidateExtents",
	}, {
		"sums of sizes that wrap", "graphir/validate_extents.go",
		"return sum, hi == 0 && carry == 0", "return sum, hi == hi && carry == carry",
		"./graphir", "TestValidateExtents",
	}, {
		"mappings of one chain that wrap", "graphir/validate_extents.go",
		"if v.chains.First(uint32(i)) {", "if !v.chains.First(uint32(i)) {",
		"./graphir", "TestValidateExtents",
	}, {
		"panics of our own goroutines", "restore/build.go",
		"err = guarded(func() error {", "err = func(f func() error) error { return f() }(func() error {",
		"./restore", "TestPanicWhileWriting",
	}, {
		"panics at the C ABI", "cmd/libmedusa/main.go",
		"session.Guard(func() (err error) {", "func(f func() error) error { return f() }(func() (err error) {",
		"./internal/test/e2e", "TestPanicsEndAtTheABI",
	},
}
