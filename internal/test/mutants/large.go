package main

// large has one row for each mechanism that lets sets of graphs be larger than memory, and recording faster than a disk.
var large = []mutant{
	{
		"graph that embeds itself", "materialize/recording.go",
		"case child.order >= parent.order:", "case child.order > order:",
		"./materialize", "TestGraphsThatEmbedThemselves",
	}, {
		"graph that two nodes embed", "materialize/recording.go",
		"case r.embedded[v.Child]:", "case r.embedded[v.Child] && child == parent:",
		"./materialize", "TestGraphsThatEmbedThemselves",
	}, {
		"bound of moments in no order", "materialize/graphs.go",
		"if p.steps() > maxSteps {", "if p.steps() < 0 {",
		"./materialize", "TestMomentsInNoOrder",
	}, {
		"block map hashed once", "materialize/blocks.go",
		"m.spec.BlockMap = m.digest", "m.spec.BlockMap = graphir.BlockMapDigest(entries(m.a.begin.blocks))",
		"./materialize", "TestManyBlocksWithManyPointers",
	}, {
		"graphs forgotten once they are compiled", "materialize/walk.go",
		"if g != nil && !w.r.embedded[g.ID] {", "if g != nil && w.r.embedded[g.ID] {",
		"./materialize", "TestMemoryDoesNotGrowWithNodes",
	}, {
		"graphs that miss nodes", "materialize/walk.go",
		"if g != nil && (len(g.nodes) != int(g.Nodes)", "if g != nil && (len(g.nodes) > int(g.Nodes)",
		"./materialize", "TestBrokenGraphs",
	}, {
		"row groups are encoded as soon as they are full", "graphir/writer.go",
		"if w.bytes+bytes > MaxGroup {", "if w.bytes+bytes < 0 {",
		"./graphir", "TestGoldenVersion3",
	}, {
		"digest of a row group", "graphir/rows.go",
		"|| sha256.Sum256(c.data) != group.sha256", "|| sha256.Sum256(nil) == group.sha256",
		"./graphir", "TestDamagedRows",
	}, {
		"graphs of row groups are checked", "graphir/rows.go",
		"if v.total > 0 {", "if v.total < 0 {",
		"./graphir", "TestDamagedRows",
	}, {
		"row groups point to known objects only", "graphir/rows.go",
		"if !c.referred[c.spec.Target(p)] {", "if len(c.referred) == 0 {",
		"./graphir", "TestDamagedRows",
	}, {
		"base of a row", "graphir/rows.go",
		"if base >= 0 && base != have.graph {", "if base < -1 {",
		"./graphir", "TestDamagedRows",
	}, {
		"row groups out of order", "graphir/rows.go",
		"if have.graph > k {", "if have.graph > k+1<<30 {",
		"./graphir", "TestRowsAgreeWithNodes",
	}, {
		"memory of a row group", "graphir/rows.go",
		"if bytes += p.bytes; bytes > MaxGroup {", "if bytes += p.bytes; bytes < 0 {",
		"./graphir", "TestDamagedRows|TestRowsBoundMemory",
	}, {
		"the recorder waits for memory, not for ever more of it", "interpose/preload/trace_file.c",
		"if (!f->spare && f->held + CHUNK_LIMIT > MOST_HELD) {", "if (!f->spare && f->held > SIZE_MAX - 1) {",
		"./interpose", "TestSlowDisk",
	}, {
		"the recorder does not wait for the disk", "interpose/preload/trace_file.c",
		"if (!f->spare && f->held + CHUNK_LIMIT > MOST_HELD) {", "if (!f->spare && f->held > 0) {",
		"./interpose", "TestSlowDisk",
	}, {
		"memory that was laid out for another template", "graphir/plan.go",
		"if in.plan != p {", "if in.plan == nil {",
		"./artifacts", "TestRowGroups",
	}, {
		"columns that held another graph", "graphir/decode_graph.go",
		"\t\tc.clear()\n", "",
		"./graphir", "Test.*RoundTrip|TestDecode",
	}, {
		"columns that another graph is predicted by", "graphir/decode_graph.go",
		"if lastUse[i] == i {", "if lastUse[i] >= i {",
		"./graphir", "Test.*RoundTrip|TestDecode",
	}, {
		"what stands behind a removed key moves up", "interpose/preload/table.c",
		"\t\t\thole = i;\n", "\t\t\t(void)i;\n",
		"./interpose", "TestMap$",
	}, {
		"the recorder syncs nothing", "interpose/preload/trace_file.c",
		"\treturn write_all(fd, data, len);", "\treturn write_all(fd, data, len) ? 1 : fdatasync(fd);",
		"./interpose", "TestSlowDisk",
	}, {
		"saved contents in order", "materialize/saved.go",
		"cmp.Or(cmp.Compare(x.alloc, y.alloc), cmp.Compare(x.offset, y.offset))", "cmp.Compare(x.alloc, y.alloc)",
		"./materialize", "TestContentsStayInAFile",
	},
}
