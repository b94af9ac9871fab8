package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"medusa/test/attack/mutate"
)

// archive is one way out of a bundled directory.
type archive struct {
	name        string
	entries     []mutate.Entry
	size, files uint64 // declared by the manifest, if not the truth
}

// archiveRoom is the number of bytes that starts from hostile archives may take on the disk, all in all. The cache's limit
// in these starts is half of it.
const archiveRoom = 64 << 20

// escapes are archives; up leads from the unpacked directory to the watched tree.
func escapes(p *place) []archive {
	file := func(name string) mutate.Entry { return mutate.Entry{Name: name, Data: "out\n", Mode: 0o644} }
	etc := filepath.Join(p.outside, "etc")
	deep := strings.Repeat("d/", 300)
	return []archive{
		{"parents", []mutate.Entry{file("../../outside/etc/evil")}, 0, 0},
		{"an absolute name", []mutate.Entry{file(etc + "/evil")}, 0, 0},
		{"a symbolic link out, and a file through it", []mutate.Entry{{Name: "a", Linkname: etc, Type: '2', Mode: 0o777}, file("a/evil")}, 0, 0},
		{"a hard link to a file outside, and data for it", []mutate.Entry{{Name: "a", Linkname: etc + "/cron.d/job", Type: '1', Mode: 0o644}, file("a")}, 0, 0},
		{"a device", []mutate.Entry{{Name: "null", Type: '3', Mode: 0o666}}, 0, 0},
		{"one name twice", []mutate.Entry{file("a"), {Name: "a", Data: "two\n", Mode: 0o755}}, 0, 0},
		{"a file, then a directory of its name", []mutate.Entry{file("a"), {Name: "a/", Mode: 0o755}, file("a/b")}, 0, 0},
		{"names with NUL and newline", []mutate.Entry{{Name: "x", Data: "x", Mode: 0o644, Pax: [][2]string{{"path", "a\x00/../../b\nc"}}}}, 0, 0},
		{"huge declared sizes", []mutate.Entry{{Name: "a", Data: "x", Mode: 0o644, Size: 1 << 32}}, 1 << 62, 1 << 40},
		{"a sparse file of 128 MiB", []mutate.Entry{{Name: "s", Data: "0\n" + strings.Repeat("\x00", 510), Mode: 0o644, Pax: [][2]string{
			{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.name", "s"}, {"GNU.sparse.realsize", "134217728"}}}}, 128 << 20, 1},
		{"long paths", []mutate.Entry{file(deep + "x"), file(strings.Repeat("n", 300))}, 0, 0},
		{"names that differ in case", []mutate.Entry{file("A"), file("a"), {Name: "B/", Mode: 0o755}, file("b")}, 0, 0},
		{"setuid files in folders without rights", []mutate.Entry{{Name: "d/", Mode: 0}, {Name: "d/su", Data: "#!/bin/sh\n", Mode: 0o6755}}, 0, 0},
	}
}

// archives restores an artifact with each of them, at the path that it names itself and at one that the user names.
func archives(ctx context.Context, a *attacker) error {
	counts := map[string]int{}
	for i := range escapes(&place{}) {
		for _, given := range []bool{true, false} {
			how, err := a.unpack(ctx, i, given)
			if err != nil {
				return err
			}
			counts[how]++
		}
	}
	a.try(len(escapes(&place{})))
	a.line("archives, each twice", counts)
	return nil
}

// unpack restores an artifact with the i-th archive.
func (a *attacker) unpack(ctx context.Context, i int, given bool) (string, error) {
	p, err := a.newPlace()
	if err != nil {
		return "", err
	}
	b, x := a.bases[0], escapes(p)[i]
	data, size, files := mutate.Pack(x.entries...)
	if x.size != 0 {
		size, files = x.size, x.files
	}
	at := filepath.Join(p.outside, "triton") // a path that names itself ends like the directory's name
	dir := filepath.Join(p.out, "unpacked")
	file, err := b.taken.Bundled("triton", at, data, size, files)
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.out, "bundled.medusa")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		return "", err
	}
	args := []string{"restore", path}
	where := "archive with " + x.name
	if given {
		args = append(args, "--dir", "triton="+dir)
		where += ", --dir"
	}
	e, err := p.run(ctx, append([]string{fmt.Sprintf("MEDUSA_CACHE_LIMIT=%d", archiveRoom/2)}, b.env...), "medusa", append(args, "--", filepath.Join(a.build, "zoo"))...)
	if err != nil {
		return "", err
	}
	if text := panicked(e.stderr); text != "" {
		a.found(panics, where, "%s", text)
	}
	if output, err := outputOf(e.stdout); err != nil || output != b.output {
		a.found(unserved, where, "exit %d, %v: %s", e.code, err, lastLine(e.stderr))
	}
	how := "not unpacked"
	for _, root := range []string{dir, p.cache} {
		taken := uint64(0)
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == root {
				return nil
			}
			info, err := entry.Info()
			if err != nil {
				return nil
			}
			if m := info.Mode(); !m.IsRegular() && !m.IsDir() || m&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				a.found(outside, where, "%s with mode %v", strings.TrimPrefix(path, p.dir), m)
			}
			taken += uint64(info.Size())
			return nil
		})
		if root == dir && taken > 0 {
			how = "unpacked within bounds"
		}
		if root == p.cache && taken > archiveRoom {
			a.found(outside, where, "%d MiB in a cache of %d", taken>>20, archiveRoom/2>>20)
		}
	}
	return how, p.close(a.tally, where)
}
