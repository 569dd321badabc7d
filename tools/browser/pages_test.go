package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "folder for pictures of all pages")

// pages returns the addresses of all pages, each with its name.
func pages(t testing.TB) [][2]string {
	alice, carol := demo.taskOf(t, "alice"), demo.taskOf(t, "carol")
	var list struct{ Jobs []struct{ ID, Host string } }
	demo.get(t, "/v1/tasks/"+alice+"/jobs?outcome=failed", &list)
	if len(list.Jobs) == 0 {
		demo.get(t, "/v1/tasks/"+alice+"/jobs?limit=1", &list)
	}
	return [][2]string{{"now", "/"}, {"tasks", "/tasks"}, {"task", "/tasks/" + alice},
		{"rollout", "/tasks/" + carol}, {"order", "/tasks/" + carol + "/order/retry"},
		{"job", "/jobs/" + list.Jobs[0].ID}, {"missing", "/tasks/0000000000"}, {"fleet", "/fleet"},
		{"fleet-outcome", "/fleet?colour=outcome&by=zone"}, {"fleet-age", "/fleet?colour=age"},
		{"log", "/jobs/" + alice + ":fw0001?find=debian"}, {"palette", "/search?q=drain+fw000"},
		{"host", "/hosts/" + list.Jobs[0].Host}, {"choose", "/run"}, {"form", "/run/exec?on=all&arg.cmd=uptime"},
		{"queue", "/queue"}, {"rollouts", "/rollouts"}, {"windows", "/windows"}, {"schedules", "/schedules"}, {"runbooks", "/runbooks"},
		{"runbook", "/runbooks/ruleset"}, {"history", "/history"}, {"nodes", "/nodes"},
		{"approvals", "/approvals"}, {"audit", "/audit"}, {"access", "/access"}, {"search", "/search?q=fw00"},
		{"halt", "/order/halt"}, {"month", "/windows?view=month&tz=place&from=2026-03-20"},
		{"propose", "/windows/order/propose"}, {"import", "/windows/import"},
		{"freeze", "/windows/order/freeze?level=everyone"}, {"dnssec", "/dnssec"}, {"lanes", "/lanes"}, {"events", "/events?state=done"},
		{"triggers", "/triggers"}, {"firings", "/firings"}, {"notices", "/notices"}, {"receivers", "/receivers"},
		{"reviews", "/reviews?all=true"}, {"sessions", "/sessions"}}
}

var widths = []int{320, 800, 1600}

// TestEachPageIsSound looks at each page in light and dark at three widths.
func TestEachPageIsSound(t *testing.T) {
	b := browserOf(t)
	open(t, b, look{width: 800, height: 900}).login()
	list := pages(t)
	for _, width := range widths {
		for _, dark := range []bool{false, true} {
			x := open(t, b, look{width: width, height: 900, dark: dark})
			for _, p := range list {
				name := fmt.Sprintf("%s at %d dark=%t", p[0], width, dark)
				x.visit(p[1])
				wrong := x.violations()
				if wide := x.js("document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide != "0" {
					wrong = append(wrong, "it is "+wide+" px wider than the window")
				}
				if p[0] == "missing" { // the browser itself complains of the status
					x.complaints()
				}
				wrong = append(wrong, x.complaints()...)
				if len(wrong) > 0 {
					t.Errorf("%s:\n  %s", name, strings.Join(wrong, "\n  "))
				}
				x.shoot(p[0], width, dark)
			}
		}
	}
}

// shoot makes a picture of the page, if pictures are wanted.
func (x *tab) shoot(name string, width int, dark bool) {
	if *shots == "" {
		return
	}
	b, err := chromedp.Run(x.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		x.t.Fatal(err)
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	err = os.WriteFile(filepath.Join(*shots, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), b, 0o600)
	if err != nil {
		x.t.Fatal(err)
	}
}
