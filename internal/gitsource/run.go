package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"muster/internal/proc"
)

// The limits of a run of git.
const (
	fetchTime = 3 * time.Minute
	readTime  = time.Minute
	coreTime  = 120     // seconds of processors
	memoryMax = 2 << 20 // KiB of addresses
	printsMax = 64 << 10
)

// ErrRefused is wrapped by errors about the contents of a repository. Others say that it could
// not be reached, or not be read.
var ErrRefused = errors.New("refused")

// refusal is an error about the contents of a repository.
type refusal struct{ text string }

func (r refusal) Error() string        { return r.text }
func (r refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

// limited runs a program with limits: no memory dumps, a bound of the bytes of a file in blocks of
// 512, of addresses and of time of processors. The arguments are data of the shell.
const limited = `ulimit -c 0; ulimit -f "$1" && ulimit -v "$2" && ulimit -t "$3" && ` +
	`shift 3 && exec "$@"`

// A call is a run of git.
type call struct {
	time time.Duration
	most int  // bytes that it prints
	both bool // what it says of errors is part of it
	in   []byte
}

// git runs git in the copy.
func (c *Copy) git(ctx context.Context, how call, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, how.time,
		fmt.Errorf("it did not end within %s", how.time))
	defer cancel()
	script := limited
	if how.both {
		script += " 2>&1"
	}
	list := []string{"-c", script, "sh", fmt.Sprint(c.Bounds.Copy / 512), fmt.Sprint(memoryMax),
		fmt.Sprint(coreTime), "git", "--git-dir=" + c.store()}
	p := proc.Program{Path: "/bin/sh", Args: append(list, args...), Dir: c.Dir, Env: c.env(),
		Most: how.most, In: how.in}
	if c.Source.User != nil {
		p.As = &syscall.Credential{Uid: c.Source.User.UID, Gid: c.Source.User.GID}
	}
	out, err := proc.Output(ctx, p)
	if c.Source.User != nil && errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("git does not get the rights of user %d: want a server of root, and "+
			"folders above %s that this user may pass (chmod o+x): %w", c.Source.User.UID, c.Dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}

// tooMuch reports whether git was ended because it printed too much.
func tooMuch(err error) bool {
	return err != nil && strings.Contains(err.Error(), "prints more than")
}

// store returns the folder of the bare copy.
func (c *Copy) store() string { return filepath.Join(c.Dir, "copy.git") }

func (c *Copy) config() string { return filepath.Join(c.Dir, "config") }

// protocol returns the one protocol that git may speak; empty: none. Git takes a list with colons,
// so nothing of an address that is not known gets there.
func (s Source) protocol() string {
	for _, one := range []string{"https", "ssh", "file"} {
		if strings.HasPrefix(s.URL, one+"://") {
			return one
		}
	}
	return ""
}

// env returns the whole environment of git.
func (c *Copy) env() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL=C.UTF-8", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + c.config(), "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=never",
		"GIT_ALLOW_PROTOCOL=" + c.Source.protocol(), "GIT_PROTOCOL_FROM_USER=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_SSH_VARIANT=ssh", "GIT_SSH_COMMAND=" + c.ssh()}
	if c.Source.Login != "" {
		env = append(env, "MUSTER_GIT_LOGIN="+c.Source.Login) // a path
	}
	return env
}

// ssh returns the command of a shell by which git reaches its server.
func (c *Copy) ssh() string {
	if c.Source.protocol() != "ssh" {
		return "/bin/false"
	}
	o := []string{"ssh", "-F", "/dev/null", "-T"}
	for _, option := range []string{"BatchMode=yes", "StrictHostKeyChecking=yes",
		"UserKnownHostsFile=" + c.Source.KnownHosts, "GlobalKnownHostsFile=/dev/null",
		"UpdateHostKeys=no", "IdentitiesOnly=yes", "IdentityAgent=none",
		"IdentityFile=" + c.Source.Key, "PreferredAuthentications=publickey", "ForwardAgent=no",
		"ClearAllForwardings=yes", "ControlPath=none", "PermitLocalCommand=no", "ConnectTimeout=20",
		"ServerAliveInterval=15", "ServerAliveCountMax=3"} {
		o = append(o, "-o", option)
	}
	for i, word := range o {
		o[i] = quoted(word)
	}
	return strings.Join(o, " ")
}

// quoted returns a word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// configOf returns all the configuration that git reads.
func configOf(s Source) string {
	text := `[core]
	hooksPath = /dev/null
	fsmonitor = false
	packedGitWindowSize = 16m
	packedGitLimit = 256m
[fetch]
	fsckObjects = true
	recurseSubmodules = false
[transfer]
	fsckObjects = true
[gc]
	autoDetach = false
[maintenance]
	auto = false
[pack]
	threads = 1
[protocol]
	version = 2
[http]
	followRedirects = false
	lowSpeedLimit = 1000
	lowSpeedTime = 30
[credential]
	helper =
[gpg]
	format = ssh
	program = /bin/false
[gpg "x509"]
	program = /bin/false
`
	if s.Signers != "" {
		text += "[gpg \"ssh\"]\n\tallowedSignersFile = \"" + s.Signers + "\"\n"
	}
	if s.CA != "" {
		text += "[http]\n\tsslCAInfo = \"" + s.CA + "\"\n"
	}
	if s.Login != "" {
		text += "[credential \"" + s.URL + "\"]\n" +
			"\thelper = \"!f() { test \\\"$1\\\" = get && cat \\\"$MUSTER_GIT_LOGIN\\\"; }; f\"\n"
	}
	return text
}

// prepare makes the folder and the bare copy where they are missing, and removes what a git that
// was killed has left. The folder with the configuration is ours. The user whose rights git has
// owns the copy in it, so nothing in the copy may lead us anywhere else.
func (c *Copy) prepare(ctx context.Context) error {
	folder, config := os.FileMode(0o700), os.FileMode(0o600)
	if c.Source.User != nil {
		folder, config = 0o711, 0o644 // that user passes, and reads
	}
	err := os.MkdirAll(c.Dir, folder)
	if err == nil {
		err = os.Chmod(c.Dir, folder)
	}
	if err == nil && c.Source.User != nil {
		err = os.Chmod(filepath.Dir(c.Dir), folder) // of all copies
	}
	if err == nil {
		err = os.WriteFile(c.config(), []byte(configOf(c.Source)), config)
	}
	if err == nil {
		err = os.Chmod(c.config(), config)
	}
	if err == nil {
		err = c.own()
	}
	if err == nil {
		err = c.sweep()
	}
	if err != nil {
		return err
	}
	_, err = c.git(ctx, call{time: readTime, most: printsMax}, "init", "--quiet", "--bare",
		"--template=", c.store())
	return err
}

// own makes the folder of the copy where it is missing, or belongs to another user than the one
// whose rights git has now.
func (c *Copy) own() error {
	want := os.Geteuid()
	if c.Source.User != nil {
		want = int(c.Source.User.UID)
	}
	info, err := os.Lstat(c.store())
	if err == nil {
		if is, known := info.Sys().(*syscall.Stat_t); known && info.IsDir() && int(is.Uid) == want {
			return nil
		}
		err = os.RemoveAll(c.store())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(c.store(), 0o700); err != nil || c.Source.User == nil {
		return err
	}
	return os.Lchown(c.store(), want, int(c.Source.User.GID))
}

// sweep removes locks and halves of packs. Nobody else works in the folder.
func (c *Copy) sweep() error {
	store, err := os.OpenRoot(c.store())
	if err != nil {
		return err
	}
	defer store.Close()
	for _, pattern := range []string{"*.lock", "refs/muster/*.lock", "objects/pack/tmp_*",
		"objects/pack/.tmp-*",
		"objects/tmp_*", "objects/*/tmp_*"} {
		list, err := fs.Glob(store.FS(), pattern)
		for _, path := range list {
			err = errors.Join(err, store.RemoveAll(path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
