package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
)

// uploads compares how a file reaches many hosts: by muster, which checks it there, and
// by scp, one host after the other. All hosts are one real sshd under many names, each
// with a file of its own, because pretended hosts keep no files.
func uploads(ctx context.Context, b *bench) (rows []row, err error) {
	content := make([]byte, b.size(64<<20))
	if _, err := rand.Read(content); err != nil {
		return nil, err
	}
	u := &uploading{bench: b, sum: sha256.Sum256(content), size: int64(len(content)),
		file: filepath.Join(b.dir, "firmware.bin"),
		to:   filepath.Join(b.dir, "uploads")}
	err = errors.Join(os.WriteFile(u.file, content, 0o600), os.Mkdir(u.to, 0o700))
	if err != nil {
		return nil, err
	}
	d, err := b.startSSHD()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	u.sshd = d
	list := d.named(b.size(50))
	n, err := b.newNode(ctx, nodeSize{children: sshChildren, slots: 1}, func(q *queue.Queue) error {
		_, put := q.PutBlob(ctx, jobs.Blob{SHA256: hex.EncodeToString(u.sum[:]),
			Size: int64(len(content)), Name: "firmware.bin"}, 1<<30, bytes.NewReader(content))
		return errors.Join(put, q.Publish(ctx, inventory, list, nil))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	got, err := b.race(ctx, min(b.rounds, 3), []contender{
		{"scp", func(ctx context.Context) (float64, error) { return u.byCopy(ctx, list) }},
		{"muster", func(ctx context.Context) (float64, error) { return u.byTask(ctx, n, list) }},
	})
	if err != nil {
		return nil, err
	}
	loop := newRow("scp in a loop", "s", got[0])
	mine := newRow(fmt.Sprintf("muster, %d at a time", sshChildren), "s", got[1])
	return []row{mine.to("scp", loop), loop}, nil
}

// uploading is what both sides of the comparison need.
type uploading struct {
	*bench
	sshd *sshd
	sum  [sha256.Size]byte
	size int64
	file string
	to   string // folder of what has arrived
}

// byCopy takes the time of scp for one host after the other.
func (u *uploading) byCopy(ctx context.Context, list []fleet.Host) (float64, error) {
	began := time.Now()
	for _, h := range list {
		cmd := exec.CommandContext(ctx, "scp", "-q", "-F", u.sshd.config, u.file,
			"127.0.0.1:"+filepath.Join(u.to, h.Name))
		if said, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, lastLines(said, 5))
		}
	}
	return time.Since(began).Seconds(), u.arrived(list)
}

// byTask takes the time of a task, from its submit to its last result.
func (u *uploading) byTask(ctx context.Context, n *node, list []fleet.Host) (float64, error) {
	t, err := u.task(len(list))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := n.q.Submit(ctx, t, map[string][]string{zone: namesOf(list)}, nil); err != nil {
		return 0, err
	}
	info, err := n.succeeded(ctx, t.ID)
	if err != nil {
		return 0, err
	}
	return info.Finished.Sub(began).Seconds(), u.arrived(list)
}

// arrived checks that each host has the file, and removes it.
func (u *uploading) arrived(list []fleet.Host) error {
	for _, h := range list {
		name := filepath.Join(u.to, h.Name)
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if sha256.Sum256(data) != u.sum {
			return fmt.Errorf("%s has something else", h.Name)
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// task brings the stored file to the hosts.
func (u *uploading) task(hosts int) (jobs.Task, error) {
	text := fmt.Sprintf(`name: bring
timeout: 10m
steps:
  - name: bring
    upload: {blob: "sha256:%x", to: "%s/{{host.name}}"}
`, u.sum, u.to)
	book, err := scripts.Parse("bring.yaml", []byte(text))
	if err != nil {
		return jobs.Task{}, err
	}
	values, err := book.BindStored(nil, nil, map[string]int64{hex.EncodeToString(u.sum[:]): u.size})
	if err != nil {
		return jobs.Task{}, err
	}
	t, err := newTask("true", hosts)
	if err != nil {
		return jobs.Task{}, err
	}
	frozen := book.Freeze(values)
	t.Spec.Runbook, t.Spec.Timeout = frozen.Runbook, jobs.AttemptTimeout(book.Timeout)
	t.Spec.Action, err = json.Marshal(frozen)
	return t, err
}

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

// named makes it many hosts.
func (d *sshd) named(n int) []fleet.Host {
	list := make([]fleet.Host, n)
	for i, name := range hostNames(n) {
		list[i] = d.host
		list[i].Name = name
	}
	return list
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
