package complete

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/fleet"
)

// Selector completes a selector of hosts.
func Selector(c *cobra.Command, _ []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	list, _ := cli.AskServer(c, allHosts)
	words := selectorWords(typed, list)
	directive := cli.NoFiles
	if !slices.ContainsFunc(words, func(w string) bool { return !strings.HasSuffix(w, "=") }) {
		directive |= cobra.ShellCompDirectiveNoSpace // a value follows
	}
	return words, directive
}

func allHosts(ctx context.Context, cl *cli.Client) ([]fleet.Host, error) {
	l, err := cl.Hosts(ctx, api.HostQuery{})
	for i, h := range l.Hosts {
		if _, drained := l.Drained[h.Name]; drained {
			labels := map[string]string{fleet.Drained: ""}
			maps.Copy(labels, h.Labels)
			l.Hosts[i].Labels = labels
		}
	}
	return l.Hosts, err
}

// Hosts completes a selector that is the only argument.
func Hosts(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	return Selector(c, nil, typed)
}

// selectorWords returns the ways to end the last word of a selector: names of hosts and, at the
// place of a label term, keys and then the values of hosts. It returns all of them, however many:
// from a part of them a shell would complete their common beginning.
func selectorWords(typed string, hosts []fleet.Host) []string {
	if isOpen(typed, "[", "]") || isOpen(typed, "(", ")") {
		return nil
	}
	start := lastWord(typed)
	before, word := typed[:start], typed[start:]
	labels := isOpen(typed, "{", "}") ||
		!strings.Contains(typed, "{") && (strings.HasPrefix(typed, "!") || strings.Contains(typed, "="))
	values := labelValues(hosts)

	var all []string
	if !labels {
		all = append(all, "all")
		for _, h := range hosts {
			all = append(all, h.Name)
		}
	}
	switch end := strings.IndexAny(word, "!="); {
	case labels && end >= 0:
		operator := word[end : len(word)-len(strings.TrimLeft(word[end:], "!="))]
		for value := range values[word[:end]] {
			all = append(all, word[:end]+operator+value)
		}
	case labels || before == "":
		for key, known := range values {
			switch {
			case labels && (strings.HasSuffix(before, "!") || len(known) == 0):
				all = append(all, key) // has it not; has it
			case len(known) > 0:
				all = append(all, key+"=")
			}
		}
	}
	var words []string
	for _, w := range all {
		if strings.HasPrefix(w, word) && w != word {
			words = append(words, cli.Cell(before+w))
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// isOpen reports whether a bracket is still open.
func isOpen(text, open, closing string) bool {
	return strings.LastIndex(text, open) > strings.LastIndex(text, closing)
}

// lastWord returns the index of the word that is being typed: behind the last operator. The '!' of
// != is none.
func lastWord(text string) int {
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ',', '&', '^', '{', '(', ' ':
			return i + 1
		case '!':
			if !strings.HasPrefix(text[i+1:], "=") {
				return i + 1
			}
		}
	}
	return 0
}

// labelValues returns the labels of hosts, and the fields that count as labels, each with its
// values.
func labelValues(hosts []fleet.Host) map[string]map[string]bool {
	values := map[string]map[string]bool{}
	for _, h := range hosts {
		labels := map[string]string{"customer": h.Customer, "zone": h.Zone, "group": h.Group}
		maps.Copy(labels, h.Labels)
		for key, value := range labels {
			_, own := h.Labels[key]
			if values[key] == nil && (own || value != "") {
				values[key] = map[string]bool{}
			}
			if value != "" {
				values[key][value] = true
			}
		}
	}
	return values
}

// HostName completes the name of a host.
func HostName(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	hosts, ok := cli.AskServer(c, func(ctx context.Context, c *cli.Client) ([]fleet.Host, error) {
		var l api.HostList
		err := c.Get(ctx, "/v1/hosts", nil, &l)
		return l.Hosts, err
	})
	if !ok {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
