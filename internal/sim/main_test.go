package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: a run makes much of it, and keeps little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
