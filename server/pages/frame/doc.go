// Package frame has what all pages share: the shell, the streams that keep a page up to date, the
// forms of orders, and the way in which a page asks the house.
//
// A page asks the API of its own server, in the process, in the name of the person who looks: so a
// browser and the command line have the same rights, the same limits and the same errors. A page
// decides nothing by itself, and holds nothing between two requests.
//
// The texts of hosts and of other people are hostile. templ escapes them, and the policy of the
// answers lets no script run but those of package assets, and no style that is written in a page.
//
// Floor 5: may import server/web, jobs, fleet, api and what is below, and nothing of the other
// rooms of the server.
package frame
