package proc

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// A Service is a foreign program that works for this process until Kill, or until this process ends
// in whatever way.
type Service struct {
	cmd  *exec.Cmd
	over chan struct{}
}

// StartService starts a program, whose output goes to a file. The signals of a terminal do not
// reach it.
func StartService(p Program, log *os.File) (*Service, error) {
	s := &Service{cmd: exec.Command(p.Path, p.Args...), over: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdin = p.Dir, p.Env, bytes.NewReader(p.In)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.As,
		Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		defer close(s.over)
		runtime.LockOSThread() // Pdeathsig comes at the end of this thread
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // its words are in the log
		}
	}()
	return s, <-started
}

// Over returns a channel that is closed once the program has ended.
func (s *Service) Over() <-chan struct{} { return s.over }

// Kill ends the program at once, with all that it has started in its process group. If the program
// has ended by itself, it has ended those itself.
func (s *Service) Kill() {
	select {
	case <-s.over:
		return // its number may be that of another program by now
	default:
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may end by itself just now
	<-s.over
}
