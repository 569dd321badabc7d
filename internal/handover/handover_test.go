package handover

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/proc"
)

// The test binary is also the service to which sockets are handed.
func TestMain(m *testing.M) {
	if os.Getenv("PLAY_SERVICE") == "" {
		os.Exit(m.Run())
	}
	files, err := proc.Sockets()
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	s, err := New(files)
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	println("all " + s.Rest())
	for _, address := range strings.Split(os.Getenv("PLAY_SERVICE"), ",") {
		network := "tcp"
		if strings.HasPrefix(address, "/") {
			network = "unix"
		}
		if l := s.At(network, address); l != nil {
			again := map[bool]string{true: "no", false: "yes"}[s.At(network, address) == nil]
			println("took " + address + " and again: " + again)
			if err := l.Close(); err != nil {
				println(err.Error())
			}
		}
	}
	println("rest " + s.Rest() + " names " + os.Getenv("LISTEN_FDS") + os.Getenv("LISTEN_PID"))
}

// serve starts the service as systemd does: its pid is known only in it.
func serve(t *testing.T, pid, takes string, list ...net.Listener) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c",
		"LISTEN_PID="+pid+` exec "$0"`, os.Args[0])
	c.Env = append(os.Environ(), "LISTEN_FDS="+string(rune('0'+len(list))), "PLAY_SERVICE="+takes)
	for _, l := range list {
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c.ExtraFiles = append(c.ExtraFiles, f)
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestSocketsAreTakenByTheirAddress(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	all, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	_, port, _ := net.SplitHostPort(all.Addr().String())
	names := "unix:" + path + "," + all.Addr().String()

	got := serve(t, "$$", path+",0.0.0.0:"+port, unix, all)
	want := "all " + names + "\ntook " + path + " and again: no\ntook 0.0.0.0:" + port + " and again: no\nrest  names \n"
	if got != want {
		t.Errorf("the service says:\n%s\nwant:\n%s", got, want)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a service that ends takes the socket of systemd away: %v", err)
	}
	got = serve(t, "$$", "127.0.0.1:"+port, unix, all)
	if want := "all " + names + "\nrest " + names + " names \n"; got != want {
		t.Errorf("another address:\n%s\nwant:\n%s", got, want)
	}
	got = serve(t, "1", path, unix, all) // they were for the process that started this one
	if want := "all \nrest  names \n"; got != want {
		t.Errorf("sockets of another process:\n%s\nwant:\n%s", got, want)
	}
}
