package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// systemd itself judges how much a unit may do: 0.0 is nothing, 10.0 all that root may.
func TestTheUnitsMayDoLittle(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if _, err := os.Stat("/etc/debian_version"); err == nil && os.Getuid() == 0 {
			t.Fatal("there is no systemd-analyze: run `make test`, which installs it")
		}
		t.Skip("there is no systemd-analyze on this machine")
	}
	score := regexp.MustCompile(`Overall exposure level for .*: ([0-9.]+) `)
	for _, role := range []string{"server", "master"} {
		file := "../../etc/systemd/muster-" + role + ".service"
		out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=20", file).
			CombinedOutput()
		got := score.FindSubmatch(out)
		if err != nil || got == nil {
			t.Errorf("%s: %v: %s", file, err, out)
		} else {
			t.Logf("%s: %s", role, got[1])
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		// A unit of root can have a good score, too, so the score alone says too little.
		for _, want := range []string{"User=muster", "Group=muster", "Type=notify", "WatchdogSec=60", "LimitCORE=0",
			"Restart=on-failure"} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s lacks %s", file, want)
			}
		}
	}
}
