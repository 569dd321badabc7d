package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/internal/files"
)

// Texts returns a list of texts as strings.
func Texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// Join returns a list of texts in one line.
func Join[T ~string](list []T) string { return strings.Join(Texts(list), ", ") }

// FlagMistakes puts the flag in front of each line of its mistakes.
func FlagMistakes(flag string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(flag + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+flag+": "))
}

// SplitArg reads name=value. A name can be given once.
func SplitArg(flag, text string, given map[string]bool) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return "", "", fmt.Errorf("%s %q: want name=value, there is no '='", flag, text)
	case name == "":
		return "", "", fmt.Errorf("%s %q: there is no name before '='", flag, text)
	case given[name]:
		return name, value, fmt.Errorf("%s %q: this argument was given already", flag, name)
	}
	given[name] = true
	return name, value, nil
}

// ParseAt reads the earliest start of a task: the zero time is at once.
func ParseAt(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(later); err == nil && d >= 0 {
			return now.Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--at %q: want 2026-12-01T02:00:00Z, '2026-12-01 02:00' (local "+
		"time) or +90m", text)
}

// ArgFileMax is more than a server accepts for all files of a task, so that the server's own error
// is shown, but a device is not read for ever.
const ArgFileMax = 2 << 20 // bytes

// ReadArgFile reads the file that an argument names: a path, "-", or <(command).
func ReadArgFile(ctx context.Context, path string) ([]byte, error) {
	return files.ReadGiven(ctx, path, ArgFileMax)
}

// ArgFiles returns ReadArgFile with its context.
func ArgFiles(ctx context.Context) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) { return ReadArgFile(ctx, path) }
}

// Chance returns random bits that make two task ids of the same moment differ.
func Chance() uint16 {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return uint16(b[0])<<8 | uint16(b[1])
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Filled turns a nil list into an empty one, which JSON shows as [].
func Filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Yes returns yes, or nothing: for cells that matter only if they are true.
func Yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
