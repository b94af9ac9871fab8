package main

// shipping has one row for each mechanism between an artifact that is pushed and one that a worker executes.
var shipping = []mutant{
	{
		"digest of what was fetched", "artifacts/store/add.go",
		"n != size || got != digits", "n != size",
		"./artifacts/oci", "TestLyingRegistry",
	}, {
		"a download that goes on", "artifacts/store/add.go",
		"if have > size {", "if have > 0 {",
		"./artifacts/store", "TestResume",
	}, {
		"a download that went wrong is fetched anew", "artifacts/store/add.go",
		"if have == 0 {", "if have >= 0 {",
		"./artifacts/store", "TestResume|TestWrongBytesAreNeverVisible",
	}, {
		"a full disk leaves nothing", "artifacts/store/add.go",
		"_ = os.Remove(path) // rather", "// rather",
		"./artifacts/store", "TestDiskFullIsSaidAndLeavesNothing",
	}, {
		"eviction spares what is in use", "artifacts/store/evict.go",
		"if err := lock(f, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {", "if err := lock(f, unix.LOCK_EX|unix.LOCK_NB); false {",
		"./artifacts/store", "TestPinnedStays",
	}, {
		"the least recently used goes first", "artifacts/store/evict.go",
		"return a.used.Compare(b.used)", "return b.used.Compare(a.used)",
		"./artifacts/store", "TestEvictsLeastRecentlyUsed",
	}, {
		"signature before anything else is fetched", "artifacts/oci/pull.go",
		"if o.Verify != nil {", "if false {",
		"./artifacts/oci", "TestSignatures|TestSignatureComesFirst",
	}, {
		"signature of this manifest", "artifacts/oci/sign.go",
		"err = trust.Verify(key, d.Digest.String(), signature)", "err = trust.Verify(key, r.Digest.String(), signature)",
		"./artifacts/oci", "TestSignatures|TestForgedSignature",
	}, {
		"what a registry shows is what the artifact says", "artifacts/oci/pull.go",
		"if !sameBytes(m.Identity, config, fetched) {", "if false {",
		"./artifacts/oci", "TestPullRefusesWhatIsNoArtifact|TestLyingRegistry",
	}, {
		"plain HTTP only for loopback", "artifacts/oci/repository.go",
		"repo.PlainHTTP = loopback(repo.Reference.Host())", "repo.PlainHTTP = true",
		"./artifacts/oci", "TestPlainHTTPOnlyForLoopback",
	}, {
		"redirects stay encrypted", "artifacts/oci/repository.go",
		"!(loopback(req.URL.Host) && loopback(via[0].URL.Host))", "false",
		"./artifacts/oci", "TestLyingRegistry",
	}, {
		"entry of an index for this GPU", "artifacts/oci/manifest.go",
		"d.Annotations[AnnotationFactor+f.Key] != f.Value })", "d.Annotations[AnnotationFactor+f.Key] == \"\" })",
		"./artifacts/oci", "TestIndexForSeveralGPUs",
	}, {
		"paths of an archive stay inside", "artifacts/layer/unpack.go",
		"\t\tif err := checkName(name); err != nil {\n\t\t\treturn fmt.Errorf(\"%w: %w\", ErrArchive, err)\n\t\t}\n", "",
		"./artifacts/layer", "TestUnsafeArchives",
	}, {
		"declared size of an archive", "artifacts/layer/unpack.go",
		"if size != l.Size || files != l.Files {", "if false {",
		"./artifacts/layer", "TestBounds|TestUnsafeArchives",
	}, {
		"links of an archive", "artifacts/layer/pack.go",
		"if entry.Type() == fs.ModeSymlink {", "if false {",
		"./artifacts/layer", "TestPackLeavesLinksOut",
	}, {
		"a cache that the user chose stands", "restore/supervisor/dirs.go",
		"if chosen != \"\" && place == \"\" {", "if false {",
		"./restore/supervisor", "TestCompiledIsFound",
	}, {
		"compiled code from a folder of one's own", "restore/supervisor/dirs.go",
		"info.Mode().Perm()&0o022 != 0", "false",
		"./restore/supervisor", "TestLinkNeedsOwnFolder",
	}, {
		"what is unpacked counts", "artifacts/store/evict.go",
		"append(out, unpacked...), total+size", "append(out, unpacked...), total+0*size",
		"./artifacts/store", "TestUnpacked",
	}, {
		"checksum of a section", "artifacts/file.go",
		"crc32.Checksum(data, castagnoli) != s.crc", "false",
		"./artifacts", "TestEveryBitFlip",
	}, {
		"engine that knows nothing of Medusa", "restore/supervisor/silent.go",
		`err = o.expectStatus(statusPath, "ended")`, "_ = statusPath",
		"./restore/supervisor", "TestEngineWithoutMedusa|TestServerWithoutMedusa",
	}, {
		"server that knows nothing of Medusa", "interpose/preload/capture.c",
		"\tif (unmarked)\n\t\ttell_unmarked();", "\tif (!unmarked)\n\t\ttell_unmarked();",
		"./interpose", "TestUnmarkedCapture",
	}, {
		"end at the identity", "interpose/preload/marks.c",
		"if (atomic_load(&identified) && ", "if (!atomic_load(&identified) && ",
		"./interpose", "TestEndAtIdentity",
	}, {
		"how a kernel was found", "restore/found.go",
		"how := r.copies[module]", "how := r.copies[module+1]",
		"./internal/test/e2e", "TestKernelsFromImages",
	},
}
