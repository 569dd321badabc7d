package keys

import "strings"

// ruleColumns is the width of a line of rules.
const ruleColumns = 78

// RuleLines breaks the rules for a user of Redis into lines of a shell.
func RuleLines(rules string) string {
	text, line := "", ""
	for _, word := range strings.Fields(rules) {
		if strings.ContainsAny(word, "~&*") {
			word = "'" + word + "'" // the shell must leave it alone
		}
		if line != "" && len(line)+1+len(word) > ruleColumns {
			text, line = text+line+" \\\n    ", ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return text + line
}
