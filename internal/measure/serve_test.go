package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tsdb makes a folder look like what a recorder leaves.
func tsdb(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheckTSDBs(t *testing.T) {
	one, other := tsdb(t, "01A/meta.json"), tsdb(t, "01B/meta.json")
	killed, empty := tsdb(t, "wal/00000000", "prometheus.yml"), t.TempDir()
	for _, test := range []struct {
		name string
		dirs []string
		want string
	}{
		{"one", []string{one}, ""},
		{"several", []string{one, other}, ""},
		{"one of a killed recorder", []string{killed}, ""},
		{"of a killed recorder beside others", []string{one, killed}, "want it alone"},
		{"empty", []string{one, empty}, "no time series in it"},
		{"missing", []string{filepath.Join(empty, "prometheus")}, "no time series in it"},
		{"a file", []string{filepath.Join(one, "01A", "meta.json")}, "not a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := CheckTSDBs(test.dirs)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got, want := errors.Is(err, ErrNoSeries), strings.HasPrefix(test.want, "no time series"); got != want {
				t.Errorf("ErrNoSeries is %v, want %v", got, want)
			}
		})
	}
}

func TestGather(t *testing.T) {
	one := tsdb(t, "01A/meta.json", "01A/chunks/000001", "prometheus.yml", "lock")
	other := tsdb(t, "01B/meta.json")
	to := filepath.Join(t.TempDir(), "data")
	if err := gather(t.Context(), to, []string{one, other, one}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if !entry.IsDir() {
			got = append(got, strings.TrimPrefix(path, to+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "01A/chunks/000001 01A/meta.json 01B/meta.json"; strings.Join(got, " ") != want {
		t.Errorf("gathered %q, want %q", got, want)
	}
}

// A TSDB from elsewhere neither blocks, nor fills the disk, nor brings along what is
// outside of it.
func TestGatherFromElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(chunk string) error
		want string
	}{
		"a FIFO":   {func(chunk string) error { return unix.Mkfifo(chunk, 0o600) }, "no regular file"},
		"a link":   {func(chunk string) error { return os.Symlink("/etc/passwd", chunk) }, "no regular file"},
		"a device": {func(chunk string) error { return os.Symlink("/dev/zero", chunk) }, "no regular file"},
		"a huge sparse file": {func(chunk string) error {
			return errors.Join(os.WriteFile(chunk, nil, 0o600), os.Truncate(chunk, 1<<40))
		}, "more than 17179869184 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tsdb(t, "01A/meta.json")
			if err := test.put(filepath.Join(dir, "01A", "index")); err != nil {
				t.Fatal(err)
			}
			err := gather(t.Context(), filepath.Join(t.TempDir(), "data"), []string{dir})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "01A/index") {
				t.Errorf("got %v, want %q and the file", err, test.want)
			}
		})
	}
	link := filepath.Join(t.TempDir(), "prometheus")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	if err := CheckTSDBs([]string{link}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("of a link to a folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gather(ctx, filepath.Join(t.TempDir(), "data"), []string{tsdb(t, "01A/meta.json")}); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}
