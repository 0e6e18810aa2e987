//! Intervals from visits: Student's t with the variance moderated across a grid.
