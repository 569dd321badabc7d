package main

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// sshd is a real one on a free port of loopback.
type sshd struct {
	*process
	host   fleet.Host
	config string // for ssh and scp
}

// startSSHD starts it and waits until it answers.
func (b *bench) startSSHD() (*sshd, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	hostKey, hostLine, err := b.newKey("sshd_host")
	if err != nil {
		return nil, err
	}
	userKey, userLine, err := b.newKey("sshd_user")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	file := func(name, text string) (string, error) {
		name = filepath.Join(b.dir, name)
		return name, os.WriteFile(name, []byte(text), 0o600)
	}
	allowed, err1 := file("authorized_keys", userLine+"\n")
	known, err2 := file("sshd_known_hosts", fmt.Sprintf("[127.0.0.1]:%s %s\n", port, hostLine))
	server, err3 := file("sshd_config", fmt.Sprintf("ListenAddress 127.0.0.1\nPort %s\nHostKey %s\n"+
		"AuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nMaxStartups 200\n"+
		"PermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n", port, hostKey, allowed))
	client, err4 := file("sshd_client", fmt.Sprintf("Host *\n  Port %s\n  User %s\n  IdentityFile %s\n"+
		"  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
		port, me.Username, userKey, known))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	p, err := b.start("sshd", "/usr/sbin/sshd", "-D", "-e", "-f", server)
	if err != nil {
		return nil, err
	}
	d := &sshd{process: p, config: client, host: fleet.Host{Address: "127.0.0.1", Port: number,
		User: me.Username, Key: userKey, HostKeys: []string{hostLine}, Zone: zone,
		Fence: fleet.FenceNone}}
	err = p.until(context.Background(), look, func() (bool, error) {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		return err == nil, nil
	})
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// newKey writes a key pair and returns its path and the line of its public half.
func (b *bench) newKey(name string) (path, line string, err error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return "", "", err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(b.dir, name)
	line = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	return path, line, os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}
