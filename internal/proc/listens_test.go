package proc_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"muster/internal/proc"
)

func TestWhoListensNamesTheProcess(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := fmt.Sprintf("(process %d)", os.Getpid())
	if got := proc.WhoListens(l.Addr().String()); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %s at its end", got, want)
	}
	for _, address := range []string{"", "nonsense", "127.0.0.1:http", "127.0.0.1:99999"} {
		if got := proc.WhoListens(address); got != "" {
			t.Errorf("%q: %q", address, got)
		}
	}
}
