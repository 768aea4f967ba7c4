package main

import "slices"

// samples are the values of several runs, in the order in which they ran.
type samples []float64

// median returns the middle value, or 0 without values.
func (s samples) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// times returns the values multiplied by a factor.
func (s samples) times(factor float64) samples {
	scaled := make(samples, 0, len(s))
	for _, v := range s {
		scaled = append(scaled, v*factor)
	}
	return scaled
}

// over returns the quotients of runs of the same round. They spread less than the values if the machine is slow for a while.
func (s samples) over(other samples) samples {
	quotients := make(samples, 0, len(s))
	for i := range min(len(s), len(other)) {
		quotients = append(quotients, s[i]/other[i])
	}
	return quotients
}
