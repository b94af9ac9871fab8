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
		"if o.Verify != nil && (o.Verify.Required || len(o.Verify.Keys) > 0) {", "if false {",
		"./artifacts/oci", "TestSignatures|TestSignatureComesFirst",
	}, {
		"signature of this manifest", "artifacts/trust/judge.go",
		"if err = s.by(k.Public, manifest); err != nil {", "if false {",
		"./artifacts/oci", "TestSignatures|TestForgedSignature",
	}, {
		"all signatures are tried", "artifacts/oci/sign.go",
		"i == maxSignatures ||", "i == 16 ||",
		"./artifacts/oci", "TestFakesDoNotCrowdOutTheSignature",
	}, {
		"the version is signed", "artifacts/trust/trust.go",
		"if version == 0 {", "if true {",
		"./artifacts/trust", "TestOlderSignatures",
	}, {
		"no older version than the least", "artifacts/trust/judge.go",
		"s.Version < least {", "false && s.Version < least {",
		"./artifacts/trust", "TestJudge",
	}, {
		"a key counts for its references and until it expires", "artifacts/trust/judge.go",
		"if err = k.counts(reference); err != nil {", "if false {",
		"./artifacts/trust", "TestJudge",
	}, {
		"a proof is of one artifact", "artifacts/trust/judge.go",
		"if !q.holds(s.Digest) {", "if false {",
		"./artifacts/trust", "TestJudge",
	}, {
		"what others can change is doubtful", "artifacts/trust/judge.go",
		"if s.Exposed != nil {", "if false {",
		"./artifacts/trust", "TestJudge",
	}, {
		"a policy belongs to this user alone", "artifacts/trust/policy.go",
		"if err := private.Check(path); err != nil {", "if false {",
		"./artifacts/trust", "TestReadPolicy",
	}, {
		"an artifact of the cache has its digest", "artifacts/store/pin.go",
		"err = s.demand(f, digits)", "err = nil",
		"./artifacts/store", "TestPlantedIsNotPinned",
	}, {
		"a record is of one file", "artifacts/store/checked.go",
		"&& was == is", "",
		"./artifacts/store", "TestRecordIsOfOneFile",
	}, {
		"a record that others could have made counts for nothing", "artifacts/store/checked.go",
		"if private.Check(path) != nil || private.Check(s.artifact(digits)) != nil {", "if false {",
		"./artifacts/store", "TestRecordStandsForTheBytes",
	}, {
		"a cache of others is refused", "artifacts/store/store.go",
		"return private.File(f)", "return nil",
		"./artifacts/store", "TestOthersCacheIsRefused",
	}, {
		"folders on the way count", "internal/private/private.go",
		"onTheWay && mode.IsDir()", "onTheWay || mode.IsDir()",
		"./internal/private", "TestCheck",
	}, {
		"a policy holds for what the engine's process chooses", "restore/supervisor/judge.go",
		"if len(refused) == 0 {", "if true {",
		"./restore/supervisor", "TestAutoChoosesAmongTheAllowed",
	}, {
		"what is refused does not reach the engine", "restore/supervisor/supervisor.go",
		"return o.native(ctx, d, reasonOf(err), err)", "artifact = o.Artifact.Ref",
		"./restore/supervisor", "TestRefusedIsNative",
	}, {
		"the operators' switch", "restore/supervisor/supervisor.go",
		"if off != nil { //", "if off != nil && o.Strict { //",
		"./restore/supervisor", "TestSwitchedOff",
	}, {
		"names in tables are text", "internal/printable/table.go",
		"args[i] = Line(v)", "args[i] = v",
		"./inspect", "TestNothingControlsTheTerminal",
	}, {
		"errors are text", "internal/printable/table.go",
		"args[i] = Text(v.Error())", "args[i] = v.Error()",
		"./cmd/medusa", "TestErrorsAreText",
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
		"case chosen != \"\":", "case false:",
		"./restore/supervisor", "TestCompiledIsFound",
	}, {
		"compiled code from a folder of one's own", "restore/supervisor/dirs.go",
		"err = private.Check(dir)", "err = nil",
		"./restore/supervisor", "TestLinkNeedsOwnFolder",
	}, {
		"paths of strangers are not written to", "artifacts/layer/caches.go",
		"digits != \"\" && len(digits) <= maxDigits && strings.Trim(digits, \"0123456789\") == \"\"", "true",
		"./restore/supervisor", "TestRecordedPathsAreNotWritten",
	}, {
		"device before directories", "restore/supervisor/dirs.go",
		"\t\t\terr = p.fits()\n", "\t\t\terr = nil\n",
		"./restore/supervisor", "TestNothingIsPlaced",
	}, {
		"notes of others", "artifacts/layer/place.go",
		"return private.Check(filepath.Join(dest, marker(l))) == nil", "_, err := os.Lstat(filepath.Join(dest, marker(l)))\n\treturn err == nil",
		"./restore/supervisor", "TestPlantedNote",
	}, {
		"variables of single runs", "internal/contract/contract.go",
		"!slices.Contains(inherited, name)", "false",
		"./restore/supervisor", "TestInheritedVariables",
	}, {
		"engine of a killed command", "interpose/guard.go",
		"unix.PR_SET_CHILD_SUBREAPER, 1", "unix.PR_SET_CHILD_SUBREAPER, 0",
		"./restore/supervisor", "TestKilledEndsTheWholeEngine",
	}, {
		"engine of a killed guard", "interpose/guard.go",
		"Pdeathsig: syscall.SIGKILL", "Pdeathsig: 0",
		"./restore/supervisor", "TestKilledGuard",
	}, {
		"embedded graphs are bounded", "graphir/validate_embedded.go",
		"total = min(total+nodes[target], MaxEmbedded+1)", "total = 0",
		"./graphir", "TestEmbeddedGraphsAreBounded",
	}, {
		"proofs that others can change stay behind", "artifacts/trust/proof.go",
		"err == nil && s.Exposed != nil", "false",
		"./cmd/medusa", "TestScripts/trust",
	}, {
		"folders of killed commands", "internal/scratch/scratch.go",
		"!e.IsDir() || !own(e)", "true",
		"./internal/scratch", "TestSweep",
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
		`err = o.expectStatus(d.status, "ended")`, "_ = d.status",
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
