package backup

import (
	"os"
	"testing"

	"muster/jobs/queue/hooks"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	hooks.Quiet()
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}
