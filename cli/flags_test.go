package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseAt(t *testing.T) {
	t.Parallel()
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, zurich)
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"+90m":                      "2026-11-21T10:30:00Z",
		"+0s":                       "2026-11-21T09:00:00Z",
		"2026-12-01T02:00:00Z":      "2026-12-01T02:00:00Z",
		"2026-12-01T02:00:00+02:00": "2026-12-01T00:00:00Z",
		"2026-12-01 02:00":          "2026-12-01T01:00:00Z",
		"2026-07-01 02:00:30":       "2026-07-01T00:00:30Z",
		"2026-12-01":                "2026-11-30T23:00:00Z", // the day begins
		"+-5m":                      "", "90m": "", "02:00": "", "2026-02-30": "", "2026-13-01 02:00": "", "now": "",
	} {
		got, err := ParseAt(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("parseAt(%q) = %s, want an error", text, got)
			}
			continue
		}
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("parseAt(%q) = %s, %v, want %s", text, got.UTC().Format(time.RFC3339), err, want)
		}
	}
}

func TestReadArgFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("a\x00b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadArgFile(t.Context(), path); err != nil || string(got) != "a\x00b\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for path, words := range map[string]string{
		"/dev/zero": "is a device", filepath.Dir(path): "is a folder", path + "x": "no such file",
		"": "the name of the file is empty, as of a variable"} {
		if _, err := ReadArgFile(t.Context(), path); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v, want %q", path, err, words)
		}
	}
}
