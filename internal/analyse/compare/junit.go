package compare

import (
	"encoding/xml"
	"fmt"
	"io"
)

// The elements of JUnit's XML that continuous integration systems read: a suite of cases,
// each of which passed, failed or could not be run (error).
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the results of the bounds as JUnit's XML: a case for each bound in each
// Group. A bound that is exceeded is a failure; one that is undecided, or could not be
// tested, is an error.
func (r *Result) JUnit(w io.Writer) error {
	suite := junitSuite{Name: fmt.Sprintf("scaler compare %s %s", r.A, r.B), Tests: len(r.Bounds)}
	for _, j := range r.Bounds {
		c := junitCase{Name: j.Bound, Class: j.Group}
		text := fmt.Sprintf("%s: %s", j.Outcome, j.Why)
		if j.P != nil {
			text += ", p " + pText(j.P)
		}
		switch j.Outcome {
		case Beyond:
			suite.Failures++
			c.Failure = &junitMessage{text}
		case Unknown, Undecided:
			suite.Errors++
			c.Error = &junitMessage{text}
		default:
			c.Out = text
		}
		suite.Cases = append(suite.Cases, c)
	}
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing bounds as JUnit's XML: %w", err)
	}
	_, err = w.Write(append([]byte(xml.Header), append(text, '\n')...))
	return err
}
