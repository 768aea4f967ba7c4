package schedule

type Input[T any] struct{ Offset T }

func (i *Input[T]) Due() {}

type plan struct{}

func Due(plan) {}
