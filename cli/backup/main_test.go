package backup

import (
	"os"
	"testing"

	"muster/jobs/queue"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	queue.Quiet()
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}
