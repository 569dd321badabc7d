package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/hosttest"
)

// always is a window that is open all day, for the owners of the boxes.
const always = `windows:
  - name: always
    customer: acme
    zone: UTC
    start: "0 0 * * *"
    length: 24h
    cutoff: 0s
    approval: none
`

// newBox makes a box with firmware of version 1.0, and a house that can reach it and makes so many
// probes after a reboot.
func newBox(t *testing.T, probes int, more ...string) (*house, *hosttest.Box) {
	t.Helper()
	b := hosttest.NewBox(t, hosttest.Options{})
	return newBoxes(t, b.Inventory(append([]string{"customer: acme"}, more...)...), probes, always), b
}

// newBoxes makes a house for some boxes, with windows for them.
func newBoxes(t *testing.T, boxes string, probes int, calendar string) *house {
	t.Helper()
	h := newCellar(t, "hosts:\n"+boxes)
	h.write("quick.yaml", quick(t, "firmware", probes))
	h.configure(map[string]any{"ssh": map[string]any{"record_dir": "/var/lib/muster/record"},
		"runbooks": []string{h.file("quick.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.write("windows.yaml", calendar)
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		t.Fatalf("muster windows apply: exit %d: %s", code, out)
	}
	h.master()
	return h
}

// quick returns a built-in runbook with other numbers for its probes, and another name.
func quick(t *testing.T, name string, probes int) string {
	t.Helper()
	data, err := os.ReadFile("../../scripts/builtin/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "name: "+name+"\n", "name: "+name+"-quick\n", 1)
	for from, to := range map[string]string{
		`unreachable: \{.*\}`: fmt.Sprintf("unreachable: {every: 2s, probes: %d}", probes),
		`not_ready: \{.*\}`:   "not_ready: {first: 1s, more: 1s, probes: 3}",
		`expect: .*`:          "expect: 1s",
		`reserve: .*`:         "reserve: 1s",
	} {
		text = regexp.MustCompile(from).ReplaceAllString(text, to)
	}
	return text
}

// flash runs the runbook firmware with a bundle of version 2.0, and waits for its end.
func (h *house) flash(b *hosttest.Box, bundle string, args ...string) jobs.JobInfo {
	h.t.Helper()
	return h.flashOn(b.Name, bundle, args...)[0]
}

// flashOn is flash for several boxes.
func (h *house) flashOn(on, bundle string, args ...string) []jobs.JobInfo {
	h.t.Helper()
	h.write("bundle", bundle)
	var done jobs.TaskInfo
	words := []string{"run", "firmware-quick", "--on", on, "--arg-file", "bundle=" + h.file("bundle"),
		"--arg", "version=2.0", "--arg", "service=test -e /run/service", "--wait"}
	for _, a := range args {
		words = append(words, "--arg", a)
	}
	h.query(&done, words...)
	return h.jobs(done.Task)
}

// wantEnd fails the test, with the output of the host, unless a job ended as wanted.
func (h *house) wantEnd(j jobs.JobInfo, outcome jobs.Outcome, class jobs.Class, words string) {
	h.t.Helper()
	out, _ := h.muster("logs", string(j.ID))
	if j.Outcome != outcome || j.Class != class || !strings.Contains(j.Error+out, words) {
		h.t.Errorf("it ended %s (%s): %s; want %s (%s) and %q. The host said:\n%s", j.Outcome, j.Class, j.Error,
			outcome, class, words, out)
	}
}

func running(b *hosttest.Box) string {
	b.AwaitReady()
	return strings.TrimSpace(b.Do(`. /etc/os-release; echo "$VERSION_ID"; head -n 1 /proc/cmdline`))
}

const (
	runsOld = "1.0\nconsole=ttyS0 rauc.slot=A"
	runsNew = "2.0\nconsole=ttyS0 rauc.slot=B"
)

func TestFirmwareIsInstalledBootedAndProven(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	before := b.Slots()
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, true)),
		jobs.Failed, jobs.ClassUser, "signature verification failed")
	if now := b.Slots(); now != before || b.Boots() != 1 {
		t.Errorf("a wrong signature changed\n%s\nto\n%s", before, now)
	}

	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false)), jobs.Succeeded, "", "")
	if now := running(b); now != runsNew || b.Boots() != 2 {
		t.Errorf("after %d boots it runs %q", b.Boots(), now)
	}
	if tries := b.Do("cat /var/lib/bootloader/tries.B"); tries != "3\n" {
		t.Errorf("the new slot is not marked good: %s tries left", tries)
	}
	// The same again has nothing to do.
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false)), jobs.Succeeded, "", "")
	if b.Boots() != 2 {
		t.Errorf("it was booted %d times", b.Boots())
	}
}

// A bundle for another model, of another version than the argument says, or too large for its slot
// writes to no slot, and leaves nothing on the host.
func TestFirmwareThatDoesNotFitChangesNothing(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	before := b.Slots()
	for _, test := range []struct {
		image        hosttest.Image
		model, words string
	}{
		{hosttest.Image{Version: "2.0"}, "other-box", "is for other-box, this is " + hosttest.Model},
		{hosttest.Image{Version: "2.1"}, hosttest.Model, "has version 2.1, asked for was 2.0"},
		{hosttest.Image{Version: "2.0", Bytes: 2 * hosttest.SlotBytes}, hosttest.Model, "has 2097152 bytes, slot"},
	} {
		h.wantEnd(h.flash(b, b.Bundle(test.image, test.model, false)), jobs.Failed, jobs.ClassUser, test.words)
	}
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false), "model=x1"),
		jobs.Failed, jobs.ClassUser, "the host is a "+hosttest.Model+", want x1")
	if now := b.Slots(); now != before || b.Boots() != 1 {
		t.Errorf("slots were\n%s\nand are\n%s\nafter %d boots", before, now, b.Boots())
	}
	if left := b.Do("ls /var/lib/muster/firmware"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// The boot loader gives up after three tries and boots the old slot.
func TestFirmwareThatDoesNotBootIsRolledBack(t *testing.T) {
	t.Parallel()
	goesBack(t, hosttest.Image{Version: "2.0", Dead: true}, jobs.ClassUser, "came back with slot A as before")
}

func TestFirmwareWithoutItsServiceIsRolledBack(t *testing.T) {
	t.Parallel()
	goesBack(t, hosttest.Image{Version: "2.0", Mute: true}, jobs.ClassTransient, "the service is not there")
}

func goesBack(t *testing.T, image hosttest.Image, class jobs.Class, words string) {
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	h.wantEnd(h.flash(b, b.Bundle(image, hosttest.Model, false)), jobs.RolledBack, class, words)
	if now := running(b); now != runsOld {
		t.Errorf("it runs %q", now)
	}
	if next := b.Do("cat /var/lib/bootloader/order"); next != "A B\n" {
		t.Errorf("the next boot tries %s", next)
	}
}

func TestFirmwareOfAHostThatIsAnotherOneIsNotCalledFine(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0", Other: true}, hosttest.Model, false)),
		jobs.Failed, jobs.ClassOperator, "host key")
	if now := running(b); now != runsNew {
		t.Errorf("it runs %q", now)
	}
}

func TestFirmwareOfAHostThatStaysAwayIsNotCalledFine(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 3, "group: pair1")
	j := h.flash(b, b.Bundle(hosttest.Image{Version: "2.0", Gone: true}, hosttest.Model, false))
	h.wantEnd(j, jobs.Unknown, jobs.ClassOperator, "not back after 3 probes, away since 2")
	var groups []jobs.Group
	h.query(&groups, "group", "ls")
	if len(groups) != 1 || groups[0].Frozen == "" {
		t.Errorf("its group is %+v, want it frozen", groups)
	}
}

// One task has both members of a pair, and there are two masters. The second member begins when the
// first has been proven, and not at all if the first went back.
func TestFirmwareOfAPairGoesOnWhenTheFirstIsProven(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	a := hosttest.NewBox(t, hosttest.Options{})
	b := a.Twin(t, hosttest.Options{})
	boxes := map[string]*hosttest.Box{a.Name: a, b.Name: b}
	h := newBoxes(t, a.Inventory("customer: acme", "group: pair1")+b.Inventory("customer: acme", "group: pair1"),
		30, always)
	h.secondMaster()

	list := h.flashOn("all", a.Bundle(hosttest.Image{Version: "2.0", Mute: true}, hosttest.Model, false))
	slices.SortFunc(list, func(x, y jobs.JobInfo) int { return strings.Compare(string(x.Outcome), string(y.Outcome)) })
	first, second := list[0], list[1]
	h.wantEnd(first, jobs.RolledBack, jobs.ClassTransient, "the service is not there")
	h.wantEnd(second, jobs.Skipped, "", first.Host+" of its group ended rolled_back")
	one, other := boxes[first.Host], boxes[second.Host]
	if now := running(one); now != runsOld || one.Boots() != 3 {
		t.Errorf("%s runs %q after %d boots", one.Name, now, one.Boots())
	}
	if out := other.Do("ls /var/lib/muster/firmware 2>&1 || :"); strings.Contains(out, "bundle") || other.Boots() != 1 {
		t.Errorf("%s was booted %d times and has %s", other.Name, other.Boots(), out)
	}

	list = h.flashOn("all", a.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false))
	slices.SortFunc(list, func(x, y jobs.JobInfo) int { return x.Started.Compare(y.Started.Time) })
	for _, j := range list {
		h.wantEnd(j, jobs.Succeeded, "", "")
		if now := running(boxes[j.Host]); now != runsNew {
			t.Errorf("%s runs %q", j.Host, now)
		}
	}
	if list[1].Started.Before(list[0].Finished.Time) {
		t.Errorf("%s began at %s, before %s ended at %s", list[1].Host, list[1].Started, list[0].Host, list[0].Finished)
	}
}

// Each member of a pair has a task of its own, and there are two masters. The first member does not
// come back: the other one does not begin, and its job says what it waits for.
func TestFirmwareOfAPairInTwoTasksWaitsForAPersonInDoubt(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	a := hosttest.NewBox(t, hosttest.Options{})
	b := a.Twin(t, hosttest.Options{})
	h := newBoxes(t, a.Inventory("customer: acme", "group: pair1")+b.Inventory("customer: acme", "group: pair1"),
		3, always)
	h.secondMaster()
	h.write("gone", a.Bundle(hosttest.Image{Version: "2.0", Gone: true}, hosttest.Model, false))
	h.write("good", a.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false))
	order := func(box *hosttest.Box, bundle string) (task jobs.TaskInfo) {
		h.query(&task, "run", "firmware-quick", "--on", box.Name, "--arg-file", "bundle="+h.file(bundle), "--arg",
			"version=2.0", "--arg", "service=test -e /run/service", "--detach")
		return task
	}
	first := order(a, "gone").Task
	h.awaitRunning(first)
	second := order(b, "good").Task

	h.wait(first)
	h.wantEnd(h.jobs(first)[0], jobs.Unknown, jobs.ClassOperator, "not back after 3 probes")
	other := h.awaitJob(jobs.NewID(second, b.Name), jobs.Blocked)
	if other.Waits != "group/pair1" || other.Attempt > 0 || !strings.Contains(other.Why, "pair1") {
		t.Errorf("the second is %+v", other)
	}
	// Even if a person clears the group: the peer cannot be asked, so the box is not booted.
	if out, code := h.muster("group", "clear", "pair1", "--reason", "box 1 is replaced"); code != 0 {
		t.Errorf("clear: exit %d: %s", code, out)
	}
	other = h.awaitJob(other.ID, jobs.Deferred)
	if now := running(b); now != runsOld || b.Boots() != 1 || !strings.Contains(other.Why, a.Name) {
		t.Errorf("after %d boots it runs %q and is %+v", b.Boots(), now, other)
	}
}

// The window ends while the bundle is installed: the job waits for the next one, the host would
// still boot its present slot, and nobody boots it. In the next window the job continues, if the
// other slot still holds the installed image.
func TestFirmwareWhoseWindowEndsIsBootedInTheNextOne(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	for _, changed := range []bool{true, false} {
		end := h.closing(15 * time.Second)
		h.write("bundle", b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false))
		var task jobs.TaskInfo
		h.query(&task, "run", "firmware-quick", "--on", b.Name, "--arg-file", "bundle="+h.file("bundle"),
			"--arg", "version=2.0", "--arg", "service=test -e /run/service", "--detach",
			"--arg", fmt.Sprintf("install=until [ $(date +%%s) -gt %d ]; "+
				`do sleep .1; done; rauc install "$1" && rauc status mark-active booted`, end.Unix()))
		j := h.awaitJob(jobs.NewID(task.Task, b.Name), jobs.Deferred)
		if j.Step != 5 || j.Next.Before(end.Add(20*time.Hour)) {
			t.Fatalf("it is %+v, want it deferred until the next day", j)
		}
		if now := running(b); now != runsOld || b.Boots() != 1 || b.Do("cat /var/lib/bootloader/order") != "A B\n" {
			t.Fatalf("out of the window it runs %q after %d boots, then\n%s", now, b.Boots(), b.Slots())
		}
		if changed {
			b.Put("/tmp/other", b.Bundle(hosttest.Image{Version: "2.1"}, hosttest.Model, false), 0o600)
			b.Do("rauc install /tmp/other && rauc status mark-active booted")
		}
		h.write("windows.yaml", always)
		if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
			t.Fatalf("muster windows apply: exit %d: %s", code, out)
		}
		h.wait(task.Task)
		if j = h.jobs(task.Task)[0]; changed {
			h.wantEnd(j, jobs.Failed, jobs.ClassOperator, "the other slot holds 2.1")
			if now := running(b); now != runsOld || b.Boots() != 1 {
				t.Errorf("it runs %q after %d boots", now, b.Boots())
			}
			continue
		}
		h.wantEnd(j, jobs.Succeeded, "", "")
		if now := running(b); now != runsNew || b.Boots() != 2 {
			t.Errorf("it runs %q after %d boots", now, b.Boots())
		}
	}
}

// closing gives all boxes a window that is open, ends so soon, and opens again in a day.
func (h *house) closing(in time.Duration) (end time.Time) {
	h.t.Helper()
	now := time.Now().UTC()
	end = now.Add(in).Truncate(time.Second)
	from := now.Truncate(time.Hour)
	h.write("windows.yaml", strings.NewReplacer("0 0 * * *", fmt.Sprintf("0 %d * * *", from.Hour()), "24h",
		end.Sub(from).String()).Replace(always))
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		h.t.Fatalf("muster windows apply: exit %d: %s", code, out)
	}
	return end
}

// With swupdate, and with commands of the operator's: a bundle with a foreign signature changes
// nothing, a bundle with other content than announced is booted and taken back, the right one
// stays.
func TestFirmwareOfOtherDrivers(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	const loader = "/etc/pretended/bootloader "
	refusal := map[string]string{"swupdate": "swupdate does not accept the bundle; nothing was installed",
		"generic": "signature verification failed"}
	slot := "slot_is=sed -n s/.*rauc.slot=//p /proc/cmdline"
	for driver, args := range map[string][]string{
		"swupdate": {slot, "options=-H box:1.0 -k /etc/pretended/ca.pem", "activate=" + loader + "set-primary B",
			"installed_is=sha256sum < /var/lib/slots/B", "good=" + loader + "set-state B good",
			"back=" + loader + "set-primary A"},
		"generic": {slot, `version_is=. /etc/os-release; echo "$VERSION_ID"`, `verify=rauc info "$1"`,
			`install=rauc install "$1" && rauc status mark-active booted`, "activate=rauc status mark-active other",
			"good=rauc status mark-good", "back=rauc status mark-active other",
			"ready=rauc status > /dev/null || exit 75"},
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			h, b := newBox(t, 30)
			flash := func(version string, alien bool) jobs.JobInfo {
				image := hosttest.Image{Version: version}
				if driver == "swupdate" {
					return h.flash(b, b.Parcel(image, "box:1.0", alien), append(args, "driver="+driver)...)
				}
				return h.flash(b, b.Bundle(image, hosttest.Model, alien), append(args, "driver="+driver)...)
			}
			before := b.Slots()
			h.wantEnd(flash("2.0", true), jobs.Failed, jobs.ClassUser, refusal[driver])
			if now := b.Slots(); now != before || b.Boots() != 1 {
				t.Errorf("a wrong signature changed\n%s\nto\n%s", before, now)
			}
			h.wantEnd(flash("2.1", false), jobs.RolledBack, jobs.ClassUser, "came back with version 2.1, want 2.0")
			if now := running(b); now != runsOld || b.Boots() != 3 {
				t.Errorf("after %d boots it runs %q", b.Boots(), now)
			}
			h.wantEnd(flash("2.0", false), jobs.Succeeded, "", "")
			if now := running(b); now != runsNew || b.Boots() != 4 {
				t.Errorf("after %d boots it runs %q", b.Boots(), now)
			}
		})
	}
}
