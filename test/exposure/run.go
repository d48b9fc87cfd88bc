package exposure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// OfRun looks at a run that is going on: a scaler, all that it has started, and its
// folder below a state folder. It returns the sockets that are listened on, and what is
// exposed: sockets that no row of a document covers, secrets in what every user sees of
// the processes, and files with secrets that others may read. Secrets in the folder are
// added to the known ones.
func OfRun(scaler int, state, document string, known Secrets) (sockets []Socket, exposed []string, err error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return nil, nil, err
	}
	pids, err := Descendants(scaler)
	if err != nil {
		return nil, nil, err
	}
	if sockets, err = Listening(pids); err != nil {
		return nil, nil, err
	}
	program, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(scaler), "exe"))
	if err != nil {
		return nil, nil, err
	}
	for i := range sockets {
		if sockets[i].Program == filepath.Base(program) {
			sockets[i].Program = "scaler" // whatever it was built as
		}
	}
	for _, s := range Undocumented(sockets, Documented(text)) {
		exposed = append(exposed, fmt.Sprintf("%v is not listed in %s", s, document))
	}
	groups, err := filepath.Glob(filepath.Join(state, "*", "*"))
	if err != nil {
		return nil, nil, err
	}
	var found []Finding
	for _, group := range groups {
		files, err := known.AddFolder(group)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, files...)
	}
	shown, err := known.InProcesses(pids)
	for _, f := range append(found, shown...) {
		exposed = append(exposed, f.String())
	}
	return sockets, exposed, err
}
