package machine

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A host takes rules back by itself: the text of package scripts does that here, too.
func TestAChangeThatIsNotConfirmedIsTakenBack(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../scripts/confirm.sh")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := pretend()
		defer m.Close()
		m.script(t, "cat > /tmp/rules.nft", "flush ruleset\ntable inet filter {\n\tchain input {\n\t}\n}\n")
		words := `verb=arm id=x1 within=10 job=j place=/var/lib/muster keep= prove=true
guard='echo '\''flush ruleset'\'' >"$MUSTER_DIR/old" && nft list ruleset >>"$MUSTER_DIR/old"'
apply='nft -f /tmp/rules.nft' rollback='nft -f "$MUSTER_DIR/old"'
`
		packed := ""
		for _, c := range []byte(words + string(text)) {
			packed += fmt.Sprintf(`\0%03o`, c)
		}
		line := `timeout -k 5 20 sh -c 'exec 2>&1; echo N $$ $PPID; exec sh -c "$(printf %b "$1")"' sh '` + packed + "'"
		if got := m.script(t, line, ""); got.out != "N 1005 1004\nmuster-confirm: armed 10\n" || m.Rules() == "" {
			t.Fatalf("%+v, rules %q", got, m.Rules())
		}
		time.Sleep(11 * time.Second) // of the bubble: no time passes
		if m.Rules() != "" {
			got := m.script(t, "cd /var/lib/muster/confirm/x1; ls; cat done rollback.out", "")
			t.Errorf("it has the rules still: %+v", got)
		}
	})
}
