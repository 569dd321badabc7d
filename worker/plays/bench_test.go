package plays_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/testkit/sshtest"
	"muster/worker/playbook"
	"muster/worker/plays"
)

// BenchmarkHosts compares one playbook on 20 hosts, 4 at a time, with ansible-playbook on the same
// machine: `go test ./worker/plays -bench Hosts -run '^$' -benchtime 1x`. Each host is a name of one
// sshd, with a connection of its own. Beside the rate it reports the time of the processor that the
// processes of the node take.
func BenchmarkHosts(b *testing.B) {
	const hosts, together = 20, 4
	dir := b.TempDir()
	sshd := sshtest.StartSSHD(b, sshtest.Options{Config: []string{"Subsystem sftp internal-sftp",
		"MaxStartups 100", "MaxSessions 100"}})
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write("site.yml", strings.ReplaceAll(ordinary, "hosts: web", "hosts: all"))
	if err := os.Mkdir(filepath.Join(dir, "templates"), 0o700); err != nil {
		b.Fatal(err)
	}
	write("templates/page.j2", "{{ greeting }} {{ word }}\n")
	b.Run("muster", func(b *testing.B) {
		nodes, err := os.MkdirTemp("/tmp", "plays")
		if err != nil {
			b.Fatal(err)
		}
		defer os.RemoveAll(nodes)
		player := plays.New(plays.Config{Folder: dir, Dir: nodes, OutputMax: 64 << 10})
		for range b.N {
			measured(b, hosts, func() {
				var wait sync.WaitGroup
				slots := make(chan struct{}, together)
				for i := range hosts {
					slots <- struct{}{}
					wait.Go(func() {
						h := sshd.Host
						h.Name = fmt.Sprintf("h%02d", i)
						place := filepath.Join(dir, "muster-"+h.Name)
						_ = os.Mkdir(place, 0o700)
						r, _, err := player.Play(context.Background(), playbook.Play{File: "site.yml", Host: h,
							Vars: map[string]string{"place": place, "word": "x"}, Bound: 10 * time.Minute})
						if err != nil || r.ExitCode != 0 {
							b.Errorf("exit %d, %v: %s", r.ExitCode, err, r.Output.Bytes())
						}
						<-slots
					})
				}
				wait.Wait()
			})
		}
	})
	b.Run("ansible", func(b *testing.B) {
		write("known_hosts", "muster-host "+sshd.HostKey+"\n")
		write("config", fmt.Sprintf("Host *\n HostName %s\n Port %d\n User %s\n IdentityFile %s\n"+
			" HostKeyAlias muster-host\n UserKnownHostsFile %s/known_hosts\n StrictHostKeyChecking yes\n",
			sshd.Address, sshd.Port, sshd.User, sshd.Key, dir))
		inventory := "[all]\n"
		for i := range hosts {
			place := fmt.Sprintf("%s/ansible-h%02d", dir, i)
			_ = os.Mkdir(place, 0o700)
			inventory += fmt.Sprintf("h%02d place=%s word=x\n", i, place)
		}
		write("hosts.ini", inventory)
		for range b.N {
			measured(b, hosts, func() {
				cmd := exec.Command("ansible-playbook", "-i", dir+"/hosts.ini", "-f", fmt.Sprint(together),
					"--ssh-common-args", "-F "+dir+"/config -o ControlPath="+dir+"/%n", dir+"/site.yml")
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Errorf("%v: %s", err, out)
				}
			})
		}
	})
}

// measured reports the rate of a run, and the time of the processor of its children.
func measured(b *testing.B, hosts int, run func()) {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before, began := used(), time.Now()
	run()
	b.ReportMetric(float64(hosts)/time.Since(began).Seconds(), "hosts/s")
	b.ReportMetric((used()-before).Seconds()/float64(hosts), "cpu-s/host")
}
