package process

import (
	"regexp"
	"strings"
)

// Bounds of what an error quotes of a log.
const (
	maxErrorLines = 6   // error lines, the last ones
	maxPanicLines = 8   // of a panic, its first lines
	maxLineBytes  = 600 // of a line
)

// errorLine matches a line of a log that states an error, in the formats of the programs
// that scaler starts: klog, zap's console as in istiod, JSON, logfmt, Envoy's, and
// cobra's last line.
var errorLine = regexp.MustCompile(`^[EF]\d{4} \d\d:|` +
	`^\S+\t(?i:error|fatal|panic)\t|` +
	`"level": ?"(?i:error|fatal|panic|dpanic)"|` +
	`\blevel=(?i:error|fatal|panic)\b|` +
	`^\[[^\]]+\]\[\d+\]\[(?:error|critical)\]|` +
	`^Error: `)

// panicLine matches the first line of a panic, or of another fatal error of the Go
// runtime.
var panicLine = regexp.MustCompile(`^(?:panic|fatal error): `)

// errorLines returns the lines of a log that hold the error: of a panic its first lines,
// otherwise the last lines that state an error; "" if there are none. Lines that differ
// only in the time and other numbers are listed once.
func errorLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var found []string
	seen := map[string]bool{}
	for i, line := range lines {
		if panicLine.MatchString(line) {
			return clip(lines[i:min(len(lines), i+maxPanicLines)])
		}
		if !errorLine.MatchString(line) {
			continue
		}
		message := digits.ReplaceAllString(linePrefix.ReplaceAllString(line, ""), "")
		if !seen[message] {
			seen[message] = true
			found = append(found, line)
		}
	}
	return clip(found[max(0, len(found)-maxErrorLines):])
}

// linePrefix matches the part in which the same message differs when printed by cobra and
// logged by zap.
var linePrefix = regexp.MustCompile(`^(?:Error: |\S+\t\w+\t)`)

var digits = regexp.MustCompile(`\d+`)

// clip joins lines and removes the middle of long ones: a cause is at the beginning or at
// the end.
func clip(lines []string) string {
	var short []string
	for _, line := range lines {
		if len(line) > maxLineBytes {
			const half = maxLineBytes / 2
			line = strings.ToValidUTF8(line[:half], "") + " ... " + strings.ToValidUTF8(line[len(line)-half:], "")
		}
		short = append(short, line)
	}
	return strings.Join(short, "\n")
}
