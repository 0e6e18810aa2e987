//! The statements of the five transactions.

use crate::dialect::queries;

// A parameter beside a number is a number: PostgreSQL takes one that stands alone after `case` for text.
queries! { Step, QUERIES:
    ReadOrderer = "select w_tax, c_discount, c_last, c_credit from customer join warehouse on w_id = c_w_id \
        where c_w_id = ? and c_d_id = ? and c_id = ?", [Rate, Rate, Text, Text];
    ReadNextOrder = "select d_next_o_id, d_tax from district where d_w_id = ? and d_id = ? for update", [Int, Rate];
    TakeNextOrder = "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = ? and d_id = ?", [];
    InsertOrder = "insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
        values (?, ?, ?, ?, ?, ?, ?)", [];
    InsertNewOrder = "insert into new_order (no_o_id, no_d_id, no_w_id) values (?, ?, ?)", [];
    ReadItem = "select i_price, i_name, i_data from item where i_id = ?", [Money, Text, Text];
    ReadStock = "select s_quantity, s_data, case ? + 0 when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 \
        when 4 then s_dist_04 when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 \
        when 8 then s_dist_08 when 9 then s_dist_09 when 10 then s_dist_10 end \
        from stock where s_w_id = ? and s_i_id = ? for update", [Int, Text, Text];
    TakeStock = "update stock set s_quantity = s_quantity - ? + case when s_quantity >= ? + 10 then 0 else 91 end, \
        s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
        where s_w_id = ? and s_i_id = ?", [];
    InsertLine = "insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
        ol_quantity, ol_amount, ol_dist_info) values (?, ?, ?, ?, ?, ?, ?, ?, ?)", [];

    PayWarehouse = "update warehouse set w_ytd = w_ytd + ? where w_id = ?", [];
    ReadWarehouse = "select w_name, w_street_1, w_street_2, w_city, w_state, w_zip from warehouse where w_id = ?",
        [Text, Text, Text, Text, Text, Text];
    PayDistrict = "update district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?", [];
    ReadDistrict = "select d_name, d_street_1, d_street_2, d_city, d_state, d_zip from district \
        where d_w_id = ? and d_id = ?", [Text, Text, Text, Text, Text, Text];
    FindByName = "select c_id from customer where c_w_id = ? and c_d_id = ? and c_last = ? order by c_first, c_id",
        [Int];
    ReadPayer = "select c_credit, c_balance, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
        c_since, c_credit_lim, c_discount from customer \
        where c_w_id = ? and c_d_id = ? and c_id = ? for update",
        [Text, Money, Text, Text, Text, Text, Text, Text, Text, Text, Text, Date, Money, Rate];
    ReadData = "select c_data from customer where c_w_id = ? and c_d_id = ? and c_id = ?", [Text];
    Pay = "update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1 where c_w_id = ? and c_d_id = ? and c_id = ?", [];
    PayWithData = "update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1, c_data = ? where c_w_id = ? and c_d_id = ? and c_id = ?", [];
    InsertHistory = "insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        values (?, ?, ?, ?, ?, ?, ?, ?)", [];

    ReadCustomer = "select c_balance, c_first, c_middle, c_last from customer \
        where c_w_id = ? and c_d_id = ? and c_id = ?", [Money, Text, Text, Text];
    ReadLastOrder = "select o_id, o_entry_d, o_carrier_id from orders where o_w_id = ? and o_d_id = ? and o_c_id = ? \
        order by o_id desc limit 1", [Int, Date, Int];
    ReadLines = "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line \
        where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?", [Int, Int, Int, Money, Date];

    ReadOldest = "select min(no_o_id) from new_order where no_w_id = ? and no_d_id = ?", [Int];
    DeleteNewOrder = "delete from new_order where no_w_id = ? and no_d_id = ? and no_o_id = ?", [];
    ReadReceiver = "select o_c_id from orders where o_w_id = ? and o_d_id = ? and o_id = ?", [Int];
    SetCarrier = "update orders set o_carrier_id = ? where o_w_id = ? and o_d_id = ? and o_id = ?", [];
    SetDelivered = "update order_line set ol_delivery_d = ? where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?", [];
    SumLines = "select sum(ol_amount) from order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?", [Money];
    Charge = "update customer set c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        where c_w_id = ? and c_d_id = ? and c_id = ?", [];

    ReadOrdersEnd = "select d_next_o_id from district where d_w_id = ? and d_id = ?", [Int];
    CountLow = "select count(distinct s_i_id) from order_line join stock on s_w_id = ol_w_id and s_i_id = ol_i_id \
        where ol_w_id = ? and ol_d_id = ? and ol_o_id >= ? and ol_o_id < ? and s_quantity < ?", [Int];
}
