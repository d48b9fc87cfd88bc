package boundedfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/boundedfile"
)

// What is no file of the wanted kind neither blocks nor fills the memory.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("ten"), []byte("0123456789"), 0o600),
		os.WriteFile(at("eleven"), []byte("0123456789a"), 0o600),
		os.WriteFile(at("huge"), nil, 0o600), os.Truncate(at("huge"), 1<<40),
		unix.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("folder"), 0o755),
		os.Symlink("ten", at("link")),
		os.Symlink("/dev/zero", at("device")),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"ten": nil, "link": nil,
		"eleven": boundedfile.ErrTooLarge, "huge": boundedfile.ErrTooLarge,
		"fifo": boundedfile.ErrIrregular, "folder": boundedfile.ErrIrregular, "device": boundedfile.ErrIrregular,
		"none": fs.ErrNotExist,
	} {
		for how, read := range map[string]func() ([]byte, error){
			"Read":   func() ([]byte, error) { return boundedfile.Read(at(name), 10) },
			"ReadIn": func() ([]byte, error) { return boundedfile.ReadIn(dir, name, 10) },
		} {
			got, err := read()
			switch {
			case how == "ReadIn" && name == "device": // a link out of the folder
				if err == nil {
					t.Errorf("%s(%s) = %q", how, name, got)
				}
			case !errors.Is(err, want) || want == nil && string(got) != "0123456789":
				t.Errorf("%s(%s) = %q, %v; want %v", how, name, got, err, want)
			}
		}
	}
	if _, err := boundedfile.ReadIn(at("folder"), "../ten", 10); err == nil {
		t.Error("a file outside of the folder was read")
	}
	_, err := boundedfile.Read(at("none"), 10)
	if got := boundedfile.Cause(err); got != unix.ENOENT {
		t.Errorf("cause = %v, want it without the path", got)
	}
}
