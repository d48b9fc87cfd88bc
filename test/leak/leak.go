// Package leak checks that the tests of a package leave no goroutines behind.
package leak

import (
	"testing"

	"go.uber.org/goleak"
)

// looks is the number of checks for goroutines that are left, about half a second each: what
// the last test has stopped ends a little later, and much later on a busy machine.
const looks = 30

// Main is goleak.VerifyTestMain, which looks once.
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, options}, options...)
}

// patient are tests that have run when nothing of theirs does, or not for a long time.
type patient struct {
	*testing.M
	options []goleak.Option
}

// Run is part of goleak.TestingM.
func (p patient) Run() int {
	code := p.M.Run()
	if code != 0 {
		return code
	}
	for range looks {
		if goleak.Find(p.options...) == nil {
			break
		}
	}
	return code
}
