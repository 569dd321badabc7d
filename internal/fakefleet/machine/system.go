package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Model is a kind of machine: its system and its tools.
type Model struct {
	Name    string
	kernel  string
	version string
	release string // content of /etc/os-release
	tools   map[string]tool
}

// Models returns the three models, so that answers of many machines fold into groups.
func Models() []*Model {
	tools := allTools()
	return []*Model{
		{"x100", "5.10.0-32-amd64", "#1 SMP Debian 5.10.223-1 (2024-08-10)",
			release("Debian GNU/Linux", "debian", "11", "bullseye"), tools},
		{"x200", "6.1.0-25-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.106-3 (2024-08-26)",
			release("Debian GNU/Linux", "debian", "12", "bookworm"), tools},
		{"x400", "6.6.52-wall", "#7 SMP PREEMPT_DYNAMIC",
			release("Wall OS", "wall", "7.4.1", "granite"), tools},
	}
}

func release(name, id, version, codename string) string {
	return fmt.Sprintf("PRETTY_NAME=\"%s %s (%s)\"\nNAME=\"%s\"\nVERSION_ID=\"%s\"\n"+
		"VERSION=\"%s (%s)\"\nVERSION_CODENAME=%s\nID=%s\n",
		name, version, codename, name, version, version, codename, codename, id)
}

// runUname prints its parts in the order of the letters below, as uname does.
func runUname(c *call) Status {
	model := c.machine.config.Model
	parts := []struct{ letter, text string }{
		{"s", "Linux"}, {"n", c.machine.config.Name}, {"r", model.kernel}, {"v", model.version},
		{"m", "x86_64"}, {"o", "GNU/Linux"},
	}
	asked, operands, err := c.options("asnrvmo")
	if err != nil || len(operands) > 0 {
		return c.fail(1, "invalid option -- '%s'", strings.Join(c.args, " "))
	}
	var said []string
	for _, p := range parts {
		if strings.Contains(cmp.Or(asked, "s"), p.letter) || strings.Contains(asked, "a") {
			said = append(said, p.text)
		}
	}
	return c.say("%s\n", strings.Join(said, " "))
}

func runID(c *call) Status {
	user, uid := c.machine.config.User, 0
	if user != "root" {
		uid = 1000
	}
	switch strings.Join(c.args, " ") {
	case "":
		return c.say("uid=%d(%s) gid=%d(%s) groups=%d(%s)\n", uid, user, uid, user, uid, user)
	case "-u", "-g":
		return c.say("%d\n", uid)
	case "-un", "-u -n":
		return c.say("%s\n", user)
	}
	return c.fail(1, "invalid option")
}

// runReboot ends all processes, itself included.
func runReboot(c *call) Status {
	c.machine.reboot()
	return Status{}
}

// runUptime always prints the same: machines of one fleet differ, answers of one machine do not.
func runUptime(c *call) Status {
	d := c.machine.config.ID
	up := c.machine.uptime()
	return c.say(" 12:00:00 up %d days, %2d:%02d,  0 users,  "+
		"load average: 0.%02d, 0.%02d, 0.%02d\n",
		up/(24*time.Hour), up/time.Hour%24, up/time.Minute%60, d[3]%100, d[4]%100, d[5]%100)
}

// uptime returns the uptime of the machine at the first use of its disk.
func (m *Machine) uptime() time.Duration {
	d := m.config.ID
	return time.Duration(d[0])*24*time.Hour + 24*time.Hour + time.Duration(d[1]%24)*time.Hour +
		time.Duration(d[2]%60)*time.Minute
}

func runDate(c *call) Status {
	now := time.Now().UTC()
	for _, a := range c.args {
		switch a {
		case "-u":
		case "+%s":
			return c.say("%d\n", now.Unix())
		default:
			return c.fail(1, "%s is beyond a pretended machine", a)
		}
	}
	return c.say("%s\n", now.Format(time.UnixDate))
}
