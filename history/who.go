package history

import "regexp"

// giver finds the operator in the note of an order, as servers write it: the deed, the operator,
// and the reason behind a colon.
var giver = regexp.MustCompile(`^[a-z ]{2,20}? by (\S+?)(?: \(unproven\))?(?:: |$)`)

// whoOf returns who gave the order that an event tells of; empty: nobody did.
func whoOf(detail any) string {
	for _, name := range []string{"by", "operator"} {
		if who := word(detail, name); who != "" {
			return who
		}
	}
	if found := giver.FindStringSubmatch(word(detail, "note")); found != nil {
		return found[1]
	}
	return ""
}
