// Package books shows and keeps the things that work needs: hosts and their facts, runbooks, stored
// contents.
//
// Floor 6: may import server/duties, server/stock, server/web, scripts, and what is below.
package books
