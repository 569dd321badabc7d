package jsonpath

import (
	"slices"
	"strings"
	"testing"
)

func TestAPathFindsItsValue(t *testing.T) {
	const output = `{"slots": [{"rootfs.0": {"state": "good", "size": 10.50}}], "up": true, "none": null}`
	v, err := Parse([]byte(output))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want, wrong string }{
		{path: `slots.0."rootfs.0".state`, want: "good"},
		{path: `slots.0."rootfs.0".size`, want: "10.50"}, // as the command spelled it
		{path: "up", want: "true"},
		{path: "none", want: "null"},
		{path: "slots.1", wrong: "the output has no slots.1"},
		{path: "slots.-1", wrong: "the output has no slots.-1"},
		{path: "up.x", wrong: "the output has no up.x"},
		{path: "a..b", wrong: "want keys and places in lists"},
		{path: `"a`, wrong: "a quote has no end"},
		{path: `"a"b`, wrong: "want a dot behind the quotes"},
	} {
		got, err := Find(v, c.path)
		if got != c.want || (err == nil) != (c.wrong == "") ||
			err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: got %q, %v; want %q %q", c.path, got, err, c.want, c.wrong)
		}
	}
}

func TestAnOutputIsOneJSONValueAlone(t *testing.T) {
	for _, output := range []string{"", "{", "{} {}", "no"} {
		if v, err := Parse([]byte(output)); err == nil {
			t.Errorf("%q: got %v, want an error", output, v)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(`slots.0."rootfs.0".state`)
	f.Fuzz(func(t *testing.T, path string) {
		parts, err := Split(path)
		if err != nil {
			return
		}
		for i, p := range parts {
			parts[i] = `"` + p + `"`
		}
		again, err := Split(strings.Join(parts, "."))
		for i := range again {
			again[i] = `"` + again[i] + `"`
		}
		if err != nil || !slices.Equal(again, parts) {
			t.Errorf("%q: %q, then %q, %v", path, parts, again, err)
		}
	})
}
