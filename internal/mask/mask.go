// Package mask replaces values that look like secrets, in environments and in configuration, by a text
// that says so. What is written of a run or a cluster may be read by anybody.
package mask

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Masked replaces a value that looks like a secret.
const Masked = "(masked)"

// secretWords are parts of the names of variables and fields that hold secrets.
var secretWords = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD", "CREDENTIAL", "CREDENTIALS", "APIKEY", "KEY", "AUTH", "AUTHORIZATION", "COOKIE",
}

// secretValue matches keys in PEM, JSON web tokens, bearer tokens, access keys of
// clouds and hosts of code, URLs with a user, and user:password@ before a host without a scheme.
var secretValue = regexp.MustCompile(`-----BEGIN |\beyJ[A-Za-z0-9_-]{10,}\.|(?i:\bbearer )|\bAKIA[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}` +
	`|://[^/\s@]+@|(?:^|[\s"'=,;])[^/\s:@"'=,;]+:[^\s@]+@[\w(\[]`)

// secretPair matches the name of a secret and its value inside a text: of a connection string (password=x), of JSON ("password": "x"),
// also inside a string, of YAML and a header (password: x), or of a command line (--token x).
var secretPair = regexp.MustCompile(`(?i)(?:` + secretName + `(?:\s*=\s*|\\?["']\s*:\s*|:[ \t]+)|--[\w-]*` + secretName + `\s+)\\?["']?([^\s"'=,;&\\]+)`)

const secretName = `(?:password|passwd|passphrase|pwd|secret|token|authorization|(?:api|access|account|private)[_-]?key)`

// holdsSecret reports whether a text looks like a secret, or has one in it.
func holdsSecret(text string) bool {
	if secretValue.MatchString(strings.ReplaceAll(text, "@sha256:", " ")) { // of an image, name:tag@sha256:digest
		return true
	}
	return slices.ContainsFunc(secretPair.FindAllStringSubmatch(text, -1), func(pair []string) bool {
		return !plain(pair[1]) && !computed.MatchString(pair[1])
	})
}

// computed matches what stands for a value that is elsewhere: an operator of an access log, a reference, an action of a template.
var computed = regexp.MustCompile(`^(?:%[A-Z_]+[(%]|\$[({]|\{\{)`)

// Value returns the value of a variable or a field as anybody may read it. By its name it is a secret unless
// it is a number, a truth value or a length of time, as settings are that are about secrets.
func Value(name, value string) string {
	if value == "" {
		return value
	}
	words := wordsOf(name)
	// A policy is no secret, as in controlPlaneAuthPolicy.
	named := slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) }) && words[len(words)-1] != "POLICY"
	if named && !plain(value) || holdsSecret(value) {
		return Masked
	}
	return value
}

// Args returns the arguments of a program as anybody may read them, and how many were masked: values by the names of their
// flags, --name=value and --name value, and other arguments by what they look like.
func Args(args []string) (all []string, masked int) {
	flag := "" // whose value may be the next argument
	for _, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		hidden := arg
		switch isFlag := strings.HasPrefix(arg, "-"); {
		case strings.HasPrefix(arg, "-----BEGIN "): // PEM, and no flag
			hidden = Masked
		case isFlag && joined, joined && Value(flag, arg) == arg:
			hidden = name + "=" + Value(strings.TrimLeft(name, "-"), value)
		case !strings.HasPrefix(arg, "--"):
			hidden = Value(flag, arg)
		}
		if flag = ""; strings.HasPrefix(arg, "-") && !joined {
			flag = strings.TrimLeft(arg, "-")
		}
		if hidden != arg {
			masked++
		}
		all = append(all, hidden)
	}
	return all, masked
}

// wordsOf returns the words of a name, as in API_TOKEN, api-token and apiToken.
func wordsOf(name string) []string {
	var spaced strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			spaced.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		spaced.WriteRune(r)
	}
	return strings.FieldsFunc(strings.ToUpper(spaced.String()), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

func plain(value string) bool {
	_, number := strconv.ParseFloat(value, 64)
	_, truth := strconv.ParseBool(value)
	_, length := time.ParseDuration(value)
	// A long number may well be a secret.
	return truth == nil || length == nil || number == nil && len(value) < 10
}

// Env returns variables of an environment, NAME=VALUE, as anybody may read them.
func Env(env []string) []string {
	masked := slices.Clone(env)
	for i, kv := range masked {
		if name, value, ok := strings.Cut(kv, "="); ok {
			masked[i] = name + "=" + Value(name, value)
		}
	}
	return masked
}

// Settings returns settings, PATH=VALUE with a value in YAML, as anybody may read them.
func Settings(settings []string) []string {
	masked := slices.Clone(settings)
	for i, setting := range masked {
		masked[i] = Setting(setting)
	}
	return masked
}

// Setting returns one of [Settings]. What is in a map or a list is masked by the names of its fields; a value that cannot be read is masked.
func Setting(setting string) string {
	path, text, ok := strings.Cut(setting, "=")
	if !ok {
		return setting
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return path + "=" + Masked
	}
	switch value.(type) {
	case map[string]any, []any:
		Tree(value)
		out, err := json.Marshal(value)
		if err != nil {
			return path + "=" + Masked
		}
		return path + "=" + string(out)
	}
	return path + "=" + Value(path, text)
}

// Tree masks the texts of a value of JSON, in place, by the names of their fields. Where an object has a name, or
// a key, and a value, as headers have, the value is masked by that name. The key of a label selector is the name of a label.
// It returns how many were masked.
func Tree(value any) int {
	_, masked := tree("", value)
	return masked
}

func tree(field string, value any) (_ any, masked int) {
	switch v := value.(type) {
	case map[string]any:
		pair := field // of the name and the value of a header
		if text, ok := v["value"].(string); ok {
			for _, by := range []string{"name", "key"} {
				if name, ok := v[by].(string); ok {
					pair = name
				}
			}
			if hidden := Value(pair, text); hidden != text {
				v["value"] = hidden
				masked++
			}
		}
		_, isPair := v["value"]
		_, isSelector := v["operator"]
		for name, of := range v {
			if isPair && (name == "value" || name == "name" || name == "key") || isSelector && name == "key" {
				continue
			}
			hidden, n := tree(name, of)
			v[name] = hidden
			masked += n
		}
	case []any:
		for i, of := range v {
			hidden, n := tree(field, of)
			v[i] = hidden
			masked += n
		}
	case string:
		if hidden := Value(field, v); hidden != v {
			return hidden, 1
		}
	}
	return value, masked
}

// pairs matches, in the text of a template, the name of a variable and its value in the next line.
var pairs = regexp.MustCompile(`(?m)^([ \t]*(?:- )?name:[ \t]*)(\S+)([ \t]*\n[ \t]*value:[ \t]*)(\S.*)$`)

// Template masks the values of variables in a template of configuration, which is no YAML before it is executed, and
// lines that look like secrets. Values that the template computes stay. It returns how many were masked.
func Template(text string) (_ string, masked int) {
	text = pairs.ReplaceAllStringFunc(text, func(pair string) string {
		parts := pairs.FindStringSubmatch(pair)
		name, value := strings.Trim(parts[2], `"'`), strings.Trim(parts[4], `"'`)
		if strings.Contains(value, "{{") || Value(name, value) == value {
			return pair
		}
		masked++
		return parts[1] + parts[2] + parts[3] + `"` + Masked + `"`
	})
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if holdsSecret(line) {
			indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			before, _, isField := strings.Cut(line, ": ")
			if lines[i] = indent + Masked; isField {
				lines[i] = before + `: "` + Masked + `"`
			}
			masked++
		}
	}
	return strings.Join(lines, "\n"), masked
}
