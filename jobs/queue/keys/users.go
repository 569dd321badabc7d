package keys

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
)

// User is a user of Redis, as `muster acl` prints it and etc/users.acl has it.
type User struct {
	Name  string   `json:"name"`
	For   string   `json:"for"`
	Zones []string `json:"zones,omitempty"` // whose keys it has; none: all
	Rules []string `json:"rules"`           // of ACL SETUSER, without a password
}

// userPrefix begins the names of users.
const userPrefix = "muster-"

// NodeUser is the name of the user for nodes of one zone.
func NodeUser(zone string) string { return userPrefix + string(RoleNode) + "-" + zone }

// adminRules let people and monitoring look at all and change nothing.
const adminRules = "%R~" + Prefix + "* resetchannels -@all +@read -@dangerous +ping +info +time " +
	"+select +slowlog|get +slowlog|len +latency|latest +latency|history +client|list +client|id " +
	"+memory|usage +acl|log +acl|whoami +cluster|slots +cluster|info"

// Users are the users of a house with some zones: one for servers, one for the nodes of each
// zone, one for people. With together, which is the name of a user, that one is for nodes
// which serve all the zones.
func Users(zones []string, together string) ([]User, error) {
	if err := checkZones(zones); err != nil {
		return nil, err
	}
	list := []User{{userPrefix + string(RoleServer), "muster server, muster up", nil,
		RoleServer.rules(nil)}}
	node := func(name string, zones []string) {
		list = append(list, User{name, "muster master and its children", zones, RoleNode.rules(zones)})
	}
	if together != "" {
		node(together, zones)
	} else {
		for _, zone := range zones {
			node(NodeUser(zone), []string{zone})
		}
	}
	return append(list, User{userPrefix + "admin", "people, monitoring", nil,
		strings.Fields("sanitize-payload resetkeys " + adminRules)}), nil
}

func checkZones(zones []string) error {
	for i, zone := range zones {
		if err := fleet.CheckZone(zone); err != nil {
			return fmt.Errorf("zone: %w", err)
		}
		if slices.Contains(zones[:i], zone) {
			return fmt.Errorf("zone %s is named twice: name each once", zone)
		}
	}
	return nil
}

// Line is the user as a line of a file of users. Nobody can log in as it before it gets a
// password.
func (u User) Line() string {
	return "user " + u.Name + " off resetpass " + strings.Join(u.Rules, " ")
}

// DefaultUser is the line of an aclfile for the user as whom nobody logs in: it is off. It may do
// everything all the same, because Redis reads its append-only file with the rights of this
// user. Without them Redis 7.0 starts, and has skipped all that scripts wrote.
const DefaultUser = "user default off resetpass ~* &* +@all"

// Order is the command that gives the user its rules in a Redis that runs. It leaves
// alone whether the user is on, and its password; one that is new is off.
func (u User) Order() string { return "ACL SETUSER " + u.Name + " " + strings.Join(u.Rules, " ") }
