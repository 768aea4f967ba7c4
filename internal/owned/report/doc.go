// Package report tells what was done to children: by metrics, in the log, and by events on their owner.
package report
