package remote

import (
	"testing"

	"go.uber.org/goleak"
)

// Every test must leave nothing behind: a worker connects thousands of times.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
