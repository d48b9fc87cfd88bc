package output

import "sync"

// OnceLog logs each kind of event the first time that it comes: what happens to
// thousands of sidecars is one line. It may be used by several goroutines at once.
type OnceLog struct {
	// Log takes a line; it must not be nil.
	Log func(msg string)

	logged sync.Map // kinds
}

// Once logs msg unless one of the same kind was logged.
func (l *OnceLog) Once(kind, msg string) {
	if _, logged := l.logged.LoadOrStore(kind, true); !logged {
		l.Log(msg)
	}
}
