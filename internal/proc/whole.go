package proc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Whole is a program that ends with all processes that it has started: also with one that has
// left its process group, such as a connection that ssh keeps for the next call.
type Whole struct {
	Name   string   // found in the PATH of Env
	Args   []string // none is read by a shell
	Dir    string   // where it runs
	Env    []string // all of its environment
	Litter string   // a folder of this run alone, to remove if this process dies first

	Said   io.Writer // gets what it prints
	Errors io.Writer // gets its standard error instead; nil: Said does
	Events io.Writer // gets what it writes to file descriptor 4
}

// wholeText runs the program $2 with its arguments, within limits: no core, 4,096 files, files of
// 1 GiB. The process beside it waits for the death of whoever has started it, which closes file
// descriptor 3, and then ends all of the group.
const wholeText = `
litter=$1
shift
(
	trap '' TERM INT HUP
	read -r _ <&3
	[ -z "$litter" ] || rm -rf -- "$litter"
	kill -KILL 0
) </dev/null >/dev/null 2>&1 4>&- &
ulimit -c 0
ulimit -n 4096 2>/dev/null
ulimit -f 2097152
exec "$@" 3<&-
`

// wholeMark is the variable by which the processes of a Whole are found.
const wholeMark = "MUSTER_WHOLE="

// Run runs the program to its end, and kills it with all that it has started when ctx ends. Then
// no process of it is left that has kept its environment, or names its folder. The exit code is
// 128 + n if signal n ended it. The error is the cause of ctx, or says why it could not be started.
func (w Whole) Run(ctx context.Context) (exit int, err error) {
	if err := ctx.Err(); err != nil {
		return -1, context.Cause(ctx)
	}
	lifeRead, life, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	defer life.Close()
	defer lifeRead.Close()
	events, theirs, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	defer events.Close()
	defer theirs.Close()

	mark := wholeMark + rand.Text()
	cmd := exec.Command("/bin/sh", append([]string{"-c", wholeText, "sh", w.Litter, w.Name},
		w.Args...)...)
	cmd.Dir, cmd.Env = w.Dir, append(w.Env[:len(w.Env):len(w.Env)], mark)
	cmd.Stdout, cmd.Stderr = w.Said, w.Said
	if w.Errors != nil {
		cmd.Stderr = w.Errors
	}
	cmd.ExtraFiles = []*os.File{lifeRead, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // what left the group may hold the pipes
	if err := cmd.Start(); err != nil {
		return -1, err
	}
	lifeRead.Close()
	theirs.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(w.Events, events) // its end is that of the processes
	}()
	group := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may be empty
	stop := context.AfterFunc(ctx, group)
	err = cmd.Wait()
	ended := stop()
	group()
	killErr := w.killRest(mark)
	// One that could not be killed may hold the pipe for ever.
	_ = events.SetReadDeadline(time.Now().Add(time.Second))
	<-copied
	return wholeEnd(cmd, errors.Join(killErr, waitError(err)), ended, ctx)
}

// waitError returns an error of Wait that is not the end of the program.
func waitError(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

func wholeEnd(cmd *exec.Cmd, err error, ended bool, ctx context.Context) (int, error) {
	switch state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); {
	case !ended:
		return -1, errors.Join(context.Cause(ctx), err)
	case err != nil:
		return -1, err
	case ok && state.Signaled():
		return 128 + int(state.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

const (
	// restTries bounds how often killAll looks again, because a process may have started another one
	// meanwhile.
	restTries = 20
	// restWait bounds the time in which a process that was killed ends.
	restWait = 100 * time.Millisecond
)

// killRest kills all processes of the program that are left, and waits for their end. Those that
// have the mark in their environment belong to it, or the folder in their command line: ssh writes
// its title over its environment.
func (w Whole) killRest(mark string) error {
	return killAll(func() []int {
		return processes(func(environ, line []byte) bool {
			return bytes.Contains(environ, []byte(mark+"\x00")) || names(line, w.Litter)
		})
	})
}

// KillNaming kills all processes that name a folder in their environment or their command line, and
// waits for their end: what is left of a program whose folder that was.
func KillNaming(folder string) error {
	return killAll(func() []int {
		return processes(func(environ, line []byte) bool {
			return names(environ, folder) || names(line, folder)
		})
	})
}

// names reports whether a text of NUL-terminated parts names a folder or a file in it. Another
// folder may have a name that begins in the same way.
func names(text []byte, folder string) bool {
	return folder != "" && (bytes.Contains(text, []byte(folder+"/")) ||
		bytes.Contains(text, []byte(folder+"\x00")))
}

// killAll kills the processes that find returns, until it returns none.
func killAll(find func() []int) error {
	for range restTries {
		left := find()
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			killAndWait(pid)
		}
	}
	return fmt.Errorf("%d processes cannot be killed", len(find()))
}

// killAndWait kills a process, which may have ended, and waits for its end within restWait. It need
// not be a child of this one.
func killAndWait(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it has ended, or the kernel has no such call
		return
	}
	defer unix.Close(fd)
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
		int(restWait.Milliseconds()))
}

// processes returns the other processes that is picks by their environment and command line. A
// process that has ended and was not waited for has neither any more.
func processes(is func(environ, line []byte) bool) (pids []int) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		pid := 0
		if _, err := fmt.Sscan(filepath.Base(folder), &pid); err != nil || pid == os.Getpid() {
			continue
		}
		// A process whose files cannot be read has ended, or is one of another user.
		environ, _ := os.ReadFile(folder + "/environ")
		line, _ := os.ReadFile(folder + "/cmdline")
		if is(environ, line) {
			pids = append(pids, pid)
		}
	}
	return pids
}
