package cli

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"muster/testkit/apitest"
)

// stranger is the id of a user whom this machine does not know.
const stranger = 61234

// sockets returns the paths of a user's own server and of the machine's, in a folder of the test.
func sockets(t *testing.T) (own, system string) {
	t.Helper()
	dir := apitest.ShortDir(t)
	return filepath.Join(dir, "own"), filepath.Join(dir, "system")
}

// answering makes a server at a path answer every request with words.
func answering(t *testing.T, path, words string) *net.UnixListener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"status":"` + words + `"}`))
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.(*net.UnixListener)
}

// whoAnswers calls the server that the client finds, and returns its words.
func whoAnswers(t *testing.T, cl *Client) string {
	t.Helper()
	var h struct{ Status string }
	if err := cl.Get(t.Context(), "/v1/health", nil, &h); err != nil {
		return err.Error()
	}
	return h.Status
}

// lookingClient returns a client that tries these paths.
func lookingClient(t *testing.T, paths ...string) *Client {
	t.Helper()
	cl, err := newClientAt(paths, "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func TestTheServerOfTheMachineIsFound(t *testing.T) {
	t.Parallel()
	own, system := sockets(t)
	answering(t, system, "the machine's")
	if got := whoAnswers(t, lookingClient(t, own, system)); got != "the machine's" {
		t.Errorf("without an own one answers %s", got)
	}
	answering(t, own, "mine")
	if got := whoAnswers(t, lookingClient(t, own, system)); got != "mine" {
		t.Errorf("with an own one answers %s", got)
	}
}

func TestAnOwnSocketThatIsLeftOverIsPassedBy(t *testing.T) {
	t.Parallel()
	own, system := sockets(t)
	l := answering(t, own, "mine")
	l.SetUnlinkOnClose(false)
	l.Close()
	answering(t, system, "the machine's")
	if got := whoAnswers(t, lookingClient(t, own, system)); got != "the machine's" {
		t.Errorf("there answers %s", got)
	}
}

func TestACommandStaysWithTheServerItHasFound(t *testing.T) {
	t.Parallel()
	own, system := sockets(t)
	answering(t, system, "the machine's")
	cl := lookingClient(t, own, system)
	if got := whoAnswers(t, cl); got != "the machine's" {
		t.Fatalf("there answers %s", got)
	}
	answering(t, own, "mine")
	cl.HTTP.CloseIdleConnections()
	if got := whoAnswers(t, cl); got != "the machine's" {
		t.Errorf("in the middle of a command another one answers: %s", got)
	}
}

func TestWhoFindsNoServerSaysWhereItLooked(t *testing.T) {
	t.Parallel()
	own, system := sockets(t)
	l := answering(t, own, "mine")
	l.SetUnlinkOnClose(false)
	l.Close()
	_, err := lookingClient(t, own, system).Tasks(t.Context(), 1)
	var away *AwayError
	if !errors.As(err, &away) || away.Heard || CodeOf(err) != ExitUnreachable {
		t.Fatalf("error %v, want one of exit 3 that says that nobody heard", err)
	}
	apitest.WantParts(t, "the error", err.Error(), "no muster server was found on this machine",
		"unix://"+own+": nobody listens there any more", "unix://"+system+": there is none",
		"muster up", "MUSTER_URL")
}

// Everybody may be able to make a socket in the folder, as in /tmp.
func TestASocketOfAnotherUserIsNotTaken(t *testing.T) {
	t.Parallel()
	own, system := sockets(t)
	if err := os.Chmod(filepath.Dir(own), 0o777); err != nil {
		t.Fatal(err)
	}
	made := make(chan error)
	go func() {
		// Only this thread changes to another user, and it ends with the goroutine.
		runtime.LockOSThread()
		same := ^uintptr(0)
		_, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, same, stranger, same)
		l, err := net.Listen("unix", own)
		if err == nil {
			t.Cleanup(func() { l.Close() })
			err = os.Chmod(own, 0o777)
		}
		if no != 0 {
			err = no
		}
		made <- err
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	got := whoAnswers(t, lookingClient(t, own, system))
	apitest.WantParts(t, "the error", got, "of user 61234 listens there, not yours", "unix://"+system+": there is none")
}
