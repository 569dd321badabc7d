package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// plainUsage makes what cobra and the standard library say of wrong use tell what was
// expected: for all commands below c, too.
func plainUsage(c *cobra.Command) {
	check := c.Args
	if check == nil && c.HasParent() {
		check = cobra.ArbitraryArgs
	}
	if check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			return errors.Join(argsError(c, check(c, args)), emptyFlags(c))
		}
	}
	c.SetFlagErrorFunc(flagError)
	for _, sub := range c.Commands() {
		plainUsage(sub)
	}
}

// saysItself marks a flag that its command misses itself, beside what else is wrong.
const saysItself = "muster-says-itself"

// missesItself marks flags so: to be without them and to have them empty is one mistake.
func missesItself(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		f := c.Flags().Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[saysItself] = nil
	}
}

// emptyFlags refuses texts that were given and are empty. It is the variable of a shell that
// is not set, which must not pass for no flag: --zone "$ZONE" would then mean all zones.
func emptyFlags(c *cobra.Command) error {
	var errs []error
	c.Flags().Visit(func(f *pflag.Flag) {
		var values []string
		switch v := f.Value.(type) {
		case pflag.SliceValue:
			// None at all is a list that was given as an empty text.
			if values = v.GetSlice(); len(values) == 0 {
				values = []string{""}
			}
		default:
			values = []string{v.String()}
		}
		blank := func(text string) bool { return strings.TrimSpace(text) == "" }
		if _, told := f.Annotations[saysItself]; !told && slices.ContainsFunc(values, blank) {
			errs = append(errs, fmt.Errorf("--%s is empty, as of a variable that is not set: want a value",
				f.Name))
		}
	})
	return errors.Join(errs...)
}

// argsError is about the number of arguments; other errors have words of their own.
func argsError(c *cobra.Command, err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "accepts ") &&
		!strings.HasPrefix(err.Error(), "requires ") {
		return err
	}
	return fmt.Errorf("want %s: it %w", strings.TrimSuffix(c.UseLine(), " [flags]"), err)
}

// flagError is about a flag that is not there, or whose value cannot be read.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "invalid duration"):
		return fmt.Errorf("%w: want a time such as 90s, 30m or 2h", err)
	case strings.Contains(text, "strconv.ParseInt"):
		return fmt.Errorf("%w: want a whole number", err)
	case strings.Contains(text, "strconv.ParseBool"):
		return fmt.Errorf("%w: want true or false", err)
	}
	return err
}
