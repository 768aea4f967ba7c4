// Package operatortest tests an operator from outside: what it sends, and whether it reaches the same state when it
// crashes or reads what is no longer so.
package operatortest
