package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// nobody is the uid that the kernel shows where it cannot say another: the caller's user
// does not exist in the user namespace of this process.
const nobody = 65534

// Peer is the process at the other end of a unix socket, as it was when it connected or began
// to listen.
type Peer struct{ UID, PID int }

// PeerOf asks the kernel who is at the other end of a connection.
func PeerOf(c net.Conn) (Peer, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}, fmt.Errorf("nobody can tell who calls over %s", c.LocalAddr().Network())
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *syscall.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		cred, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, asked); err != nil {
		return Peer{}, fmt.Errorf("the kernel does not say who calls: %w", err)
	}
	return Peer{UID: int(cred.Uid), PID: int(cred.Pid)}, nil
}

// Known reports whether the uid is that of one user. It is not if the caller lives in another
// user namespace: then all of them look like nobody.
func (p Peer) Known() bool { return p.UID >= 0 && p.UID != nobody }

// User is the name of the user in the machine's list of users. If it has none, or one in which
// plain says no, it is the uid in digits. No two users have the same.
func (p Peer) User(plain func(name string) bool) string {
	digits := strconv.Itoa(p.UID)
	u, err := user.LookupId(digits)
	if err != nil {
		return digits
	}
	return nameOf(u.Username, digits, plain)
}

// Own returns the name of the user of this process, as User gives those of peers.
func Own(plain func(name string) bool) string { return Peer{UID: os.Geteuid()}.User(plain) }

// Groups returns the names of the user's groups, as the machine's lists have them. Those that have
// no name, or one in which plain says no, are left out.
func (p Peer) Groups(plain func(name string) bool) []string {
	u, err := user.LookupId(strconv.Itoa(p.UID))
	if err != nil {
		return nil
	}
	return groupsOf(u, plain)
}

// GroupsOf is Groups for a user by name; none if the machine has no such user.
func GroupsOf(name string, plain func(string) bool) []string {
	u, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	return groupsOf(u, plain)
}

func groupsOf(u *user.User, plain func(string) bool) []string {
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	var names []string
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil && nameOf(g.Name, "", plain) != "" {
			names = append(names, g.Name)
		}
	}
	return names
}

// nameOf chooses between a name and a uid. A name of digits may be the uid of another.
func nameOf(name, uid string, plain func(string) bool) string {
	if strings.Trim(name, "0123456789") == "" || !plain(name) {
		return uid
	}
	return name
}

// String names the process and its user, for people.
func (p Peer) String() string {
	return fmt.Sprintf("process %d of user %s", p.PID, p.User(func(string) bool { return true }))
}
