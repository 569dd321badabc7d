package machine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What longer scripts need, such as that which confirms a change.
func TestParameters(t *testing.T) {
	check(t, []saying{
		{"the shortest end", "a=x/y/z; echo ${a%/*}", "x/y\n", ""},
		{"the longest end", "a=x/y/z; echo ${a%%/*}", "x\n", ""},
		{"the shortest beginning", "a=x/y/z; echo ${a#*/}", "y/z\n", ""},
		{"the longest beginning", "a=x/y/z; echo ${a##*/}", "z\n", ""},
		{"nothing fits", "a=x; echo ${a%%/*}${a#y}", "xx\n", ""},
		{"a pattern of a variable", `a=1.50 b=.*; echo ${a%%$b} "${a%"$b"}"`, "1 1.50\n", ""},
		{"arithmetic", "a=7 b=; echo $((a * 2 - 5)) $((b + 1)) $((a > 3 && 1))", "9 1 1\n", ""},
	})
}

func TestJumps(t *testing.T) {
	check(t, []saying{
		{"return", "f() { echo a; return 3; echo b; }; f; echo $?", "a\n3\n", ""},
		{"return keeps the status", "f() { false; return; }; f; echo $?", "1\n", ""},
		{"return out of a loop", "f() { for i in 1 2; do echo $i; return; done; }; f; echo x", "1\nx\n", ""},
		{"only one function is left", "f() { return 1; }; g() { f; echo g; }; g", "g\n", ""},
		{"break", "for i in 1 2 3; do [ $i = 2 ] && break; echo $i; done; echo x", "1\nx\n", ""},
		{"continue", "for i in 1 2 3; do [ $i != 2 ] || continue; echo $i; done", "1\n3\n", ""},
		{"break out of while", "while :; do echo a; break; done; echo x", "a\nx\n", ""},
		{"eval", `a='echo "b  c"'; eval "$a"; eval "d=e"; echo $d`, "b  c\ne\n", ""},
	})
}

func TestToolsOfScripts(t *testing.T) {
	check(t, []saying{
		{"command -v", "f() { :; }; command -v f sh; command -v sh; command -v gone || echo no", "sh\nno\n",
			"command: want -v and a name\n"},
		{"cp", "cd /tmp; echo a >b; cp b c; echo d >>b; cat c b; cp gone e", "a\na\nd\n",
			"cp: cannot copy 'gone' to 'e': No such file or directory\n"},
		{"rmdir", "cd /tmp; mkdir a b; touch b/c; rmdir a; rmdir b a; ls", "b\n",
			"rmdir: failed to remove 'b': Directory not empty\n"},
		{"a descriptor that was never open", "echo a 9>&-", "a\n", ""},
		{"a text without its tabs", "cat <<-E\n\ta\n\tE\n", "a\n", ""},
	})
}

// What setsid starts goes on when its group is ended.
func TestASessionOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pretend()
		defer m.Close()
		got := m.script(t, "timeout 5 sh -c 'setsid sh -c \"sleep 60; echo a >/tmp/b\" & sleep 100'; echo $?", "")
		if got.out != "124\n" || got.took > time.Minute {
			t.Errorf("%+v, want an end that does not wait for the session", got)
		}
		time.Sleep(time.Minute) // of the bubble: no time passes
		if got := m.script(t, "cat /tmp/b", ""); got.out != "a\n" {
			t.Errorf("the session said %+v", got)
		}
	})
}

func TestTimePassesOnAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pretend()
		const ask = `read -r up rest </proc/uptime; echo ${up%%.*}`
		before := m.script(t, ask, "").out
		time.Sleep(time.Minute) // of the bubble: no time passes
		after := m.script(t, "b="+strings.TrimSpace(before)+"; up=$("+ask+"); echo $((up - b))", "")
		if after.out != "60\n" {
			t.Errorf("a minute later it is up %q longer: %+v", after.out, after)
		}
	})
}
