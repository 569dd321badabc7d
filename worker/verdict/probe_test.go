package verdict

import (
	"strings"
	"testing"
)

func TestBootIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code       int
		said, want string
	}{
		{0, bootHere + "\n", bootHere}, {0, bootHere, bootHere}, {1, bootHere, ""}, {0, "", ""}, {0, "going down", ""},
		{0, bootHere + "\nmotd", ""}, {0, strings.ToUpper(bootThere), ""}, {0, "cat: no such file", ""},
	} {
		if got := ReadBoot(tt.code, tt.said); got != tt.want {
			t.Errorf("readBoot(%d, %q) = %q, want %q", tt.code, tt.said, got, tt.want)
		}
	}
}

const (
	bootHere  = "0b8c5ee6-6d8f-4a3d-9a3c-6b7a1c2d3e4f"
	bootThere = "9f0e1d2c-3b4a-4a5b-8c7d-6e5f4a3b2c1d"
)
