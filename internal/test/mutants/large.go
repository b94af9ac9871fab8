package main

// large has one row for each mechanism that lets sets of graphs be larger than memory, and recording faster than a disk.
var large = []mutant{
	{"graph that embeds itself", replace(">= parent.Order", "> order"), "./materialize/compile", "TestGraphsThatEmbedThemselves"},
	{"graph that two nodes embed", never, "./materialize/compile", "TestGraphsThatEmbedThemselves"},
	{"bound of moments in no order", never, "./materialize/compile", "TestMomentsInNoOrder"},
	{"block map hashed once", replace("m.digest", "graphir.BlockMapDigest(entries(m.a.begin.blocks))"),
		"./materialize/compile", "TestManyBlocksWithManyPointers"},
	{"graph in use while the next is read", replace("w.held[1]", "w.held[0]"), "./materialize/recording", "TestGraphInUse"},
	{"graphs forgotten once they are compiled", becomes("return true"), "./materialize/compile", "TestMemoryDoesNotGrowWithNodes"},
	{"graphs that miss nodes", replace("len(b.NodeRecords) !=", "len(b.NodeRecords) >"), "./materialize/compile", "TestBrokenGraphs"},
	{"row groups are encoded as soon as they are full", never, "./graphir", "TestGoldenVersion3"},
	{"digest of a row group", replace("sha256.Sum256(c.data) != group.sha256", "sha256.Sum256(nil) == group.sha256"), "./graphir", "TestDamagedRows"},
	{"graphs of row groups are checked", never, "./graphir", "TestDamagedRows"},
	{"row groups point to known objects only", never, "./graphir", "TestDamagedRows"},
	{"base of a row", never, "./graphir", "TestDamagedRows"},
	{"row groups out of order", never, "./graphir", "TestRowsAgreeWithNodes"},
	{"memory of a row group", never, "./graphir", "TestDamagedRows|TestRowsBoundMemory"},
	{"the recorder's memory is bounded", never, "./interpose", "TestSlowDisk"},
	{"the recorder's memory is bounded", replace("f->held + CHUNK_LIMIT > MOST_HELD", "f->held > 0"), "./interpose", "TestSlowDisk"},
	{"memory that was laid out for another template", replace("!= p", "== nil"), "./artifacts", "TestRowGroups"},
	{"columns that held another graph", skip, "./graphir", "Test.*RoundTrip"},
	{"columns that another graph is predicted by", always, "./graphir", "Test.*RoundTrip"},
	{"what stands behind a removed key moves up", skip, "./interpose", "TestMap$"},
	{"the recorder syncs nothing", becomes("return write_all(fd, data, len) ? 1 : fdatasync(fd);"), "./interpose", "TestSlowDisk"},
	{"saved contents in order", becomes("return cmp.Compare(x.Alloc, y.Alloc)"), "./materialize/compile", "TestContentsStayInAFile"},
}
